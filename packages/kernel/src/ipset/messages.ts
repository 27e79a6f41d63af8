import { addressBytes, parseAddress } from "@fairlead/base";
import type { SetCommand } from "@fairlead/netfilter";
import { attribute, nest } from "@fairlead/netfilter/netlink";
import { encodeRequest, FLAGS } from "../netlink/messages.ts";
import { ADDRESS, PART, PROTOCOL_NUMBERS, REQUEST, TYPES } from "./numbers.ts";

/** Spoken since kernel 2.6.39. */
const PROTOCOL_VERSION = 6;
/** NLA_F_NET_BYTEORDER, which addresses and ports must carry. */
const IN_NETWORK_ORDER = 0x4000;

/** A command about one member. */
export type MemberCommand = Extract<SetCommand, { readonly member: string }>;

/**
 * One member to add or to delete; what is there already, or gone, is no error.
 *
 * @throws RangeError for a member that is not an address, a port, `address,protocol:port` and that with an address
 * or
 *   network behind it
 */
export function encodeMember({ kind, set, member }: MemberCommand): Buffer {
  const attributes = [
    attribute(REQUEST.protocol, Buffer.from([PROTOCOL_VERSION])),
    attribute(REQUEST.set, Buffer.from(`${set}\0`)),
    nest(REQUEST.data, ...memberParts(member)),
  ];
  return encodeRequest({
    type: TYPES[kind],
    flags: FLAGS.request,
    addressFamily: 0,
    attributes: Buffer.concat(attributes),
  });
}

/** Asks for one set and its members. */
export function encodeSetDump(set: string): Buffer {
  const attributes = [
    attribute(REQUEST.protocol, Buffer.from([PROTOCOL_VERSION])),
    attribute(REQUEST.set, Buffer.from(`${set}\0`)),
  ];
  return encodeRequest({
    type: TYPES.list,
    flags: FLAGS.request | FLAGS.dump,
    addressFamily: 0,
    attributes: Buffer.concat(attributes),
  });
}

const FORM =
  /^(?<address>[0-9a-f.:]+?)(?:,(?<protocol>tcp|udp|sctp):(?<port>\d+)(?:,(?<second>[0-9a-f.:]+)(?:\/(?<length>\d+))?)?)?$/;

function memberParts(member: string): readonly Buffer[] {
  if (/^\d+$/.test(member)) return [portPart(member)];
  const found = FORM.exec(member)?.groups;
  if (found?.["address"] === undefined) throw new RangeError(`not a member of a set: ${member}`);
  const { protocol, port, second, length } = found;
  return [
    addressPart(PART.address, found["address"]),
    ...(protocol && port
      ? [attribute(PART.protocol, Buffer.from([PROTOCOL_NUMBERS[protocol] ?? 0])), portPart(port)]
      : []),
    ...(second ? [addressPart(PART.second, second)] : []),
    ...(length ? [attribute(PART.secondLength, Buffer.from([Number(length)]))] : []),
  ];
}

/** @throws RangeError when it is not an address */
function addressPart(type: number, text: string): Buffer {
  if (parseAddress(text) === undefined) throw new RangeError(`not an address in a member of a set: ${text}`);
  const bytes = addressBytes(text);
  const family = bytes.length === 4 ? ADDRESS.IPv4 : ADDRESS.IPv6;
  return nest(type, attribute(family | IN_NETWORK_ORDER, bytes));
}

function portPart(text: string): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(Number(text));
  return attribute(PART.port | IN_NETWORK_ORDER, bytes);
}
