import { ADDRESS_BITS, bytesText, familyOf } from "@fairlead/base";
import type { SetState } from "@fairlead/netfilter";
import { attributesIn, findAttribute, type Range } from "@fairlead/netfilter/netlink";
import { ADDRESS_FAMILIES } from "../netlink/address-families.ts";
import { PART, PROTOCOL_NUMBERS, REQUEST } from "./numbers.ts";

/** A set as the first message about it describes it; undefined for messages that only have more members. */
export function decodeSet(bytes: Buffer, message: Range): Omit<SetState, "members"> | undefined {
  const [name, type] = [REQUEST.set, REQUEST.type].map((kind) => findAttribute(bytes, message, kind));
  if (name === undefined || type === undefined) return undefined;
  const family = findAttribute(bytes, message, REQUEST.family);
  const number = family && bytes.readUInt8(family.start);
  return {
    name: textAt(bytes, name),
    type: textAt(bytes, type),
    ...(number === ADDRESS_FAMILIES.IPv4 && { family: "IPv4" }),
    ...(number === ADDRESS_FAMILIES.IPv6 && { family: "IPv6" }),
  };
}

/** The members in a message, as `ipset save` prints those of sets of addresses and ports. */
export function* decodeMembers(bytes: Buffer, message: Range): Generator<string, void, void> {
  const members = findAttribute(bytes, message, REQUEST.members);
  if (members === undefined) return;
  for (const member of attributesIn(bytes, members)) {
    if (member.type === REQUEST.data) yield memberText(bytes, member);
  }
}

function memberText(bytes: Buffer, member: Range): string {
  const found = new Map(Array.from(attributesIn(bytes, member), (one) => [one.type, one]));
  const first = addressIn(bytes, found.get(PART.address));
  const second = addressIn(bytes, found.get(PART.second));
  const port = found.get(PART.port);
  const number = port && bytes.readUInt16BE(port.start);
  if (first === undefined) return String(number);
  const served = number === undefined ? [] : [`${protocolText(bytes, found.get(PART.protocol))}:${number}`];
  const network = second === undefined ? [] : [second + lengthText(bytes, found.get(PART.secondLength), second)];
  return [first, ...served, ...network].join(",");
}

function addressIn(bytes: Buffer, range: Range | undefined): string | undefined {
  const [inner] = range === undefined ? [] : attributesIn(bytes, range);
  return inner && bytesText(bytes.subarray(inner.start, inner.end));
}

/** A single host has none. */
function lengthText(bytes: Buffer, range: Range | undefined, address: string): string {
  const length = range && bytes.readUInt8(range.start);
  return length === undefined || length === ADDRESS_BITS[familyOf(address)] ? "" : `/${length}`;
}

function protocolText(bytes: Buffer, range: Range | undefined): string {
  const number = range && bytes.readUInt8(range.start);
  return Object.keys(PROTOCOL_NUMBERS).find((name) => PROTOCOL_NUMBERS[name] === number) ?? String(number);
}

/** Texts end with a zero byte. */
function textAt(bytes: Buffer, { start, end }: Range): string {
  return bytes.toString("latin1", start, end - 1);
}
