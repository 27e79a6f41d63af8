import { IP_FAMILIES } from "@fairlead/base";
import { findAttribute, type Range } from "@fairlead/netfilter/netlink";
import type { IPFamily, Protocol } from "../family.ts";
import { ADDRESS_FAMILIES } from "../netlink/address-families.ts";
import type { Connection, Volume } from "./connection.ts";
import { ADDRESS, decodeTuple, entry, formatAddress, isInOtherZone, PROTOCOL_NUMBERS, type Tuple } from "./messages.ts";
import type { Direction } from "./parse-flow.ts";
import { STATES } from "./states.ts";

const PROTOCOLS = ["TCP", "UDP", "SCTP"] as const satisfies readonly Protocol[];

/** IPS_SEEN_REPLY, IPS_OFFLOAD and IPS_HW_OFFLOAD (linux/netfilter/nf_conntrack_common.h). */
const SEEN_REPLY = 1 << 1;
const OFFLOADED = (1 << 14) | (1 << 15);
/** CTA_PROTOINFO_TCP and CTA_PROTOINFO_SCTP, with the state in each (linux/netfilter/nfnetlink_conntrack.h). */
const STATE_OF = { TCP: 1, SCTP: 3 } as const;
const STATE_IN = 1;
const COUNTER = { packets: 1, bytes: 2 } as const;

/**
 * An entry of connection tracking with all that is told of it; undefined for one of a protocol without ports, or of
 * another zone than 0.
 *
 * @param attributes where they lie, behind the address family, version and resource
 */
export function decodeConnection(bytes: Buffer, attributes: Range): Connection | undefined {
  const family = familyAt(bytes, attributes);
  const original = decodeTuple(bytes, findAttribute(bytes, attributes, entry.original));
  const reply = decodeTuple(bytes, findAttribute(bytes, attributes, entry.reply));
  const protocol = PROTOCOLS.find((one) => PROTOCOL_NUMBERS[one] === original?.protocol);
  if (family === undefined || protocol === undefined || original === undefined || reply === undefined) return undefined;
  if (isInOtherZone(bytes, findAttribute(bytes, attributes, entry.zone))) return undefined;
  const [there, back] = [directionOf(bytes, original, family), directionOf(bytes, reply, family)];
  if (there === undefined || back === undefined) return undefined;
  const state = stateName(bytes, attributes, protocol);
  const sent = volume(bytes, findAttribute(bytes, attributes, entry.sent));
  const received = volume(bytes, findAttribute(bytes, attributes, entry.received));
  const timeout = findAttribute(bytes, attributes, entry.timeout);
  const statusAt = findAttribute(bytes, attributes, entry.status);
  const status = statusAt === undefined ? 0 : bytes.readUInt32BE(statusAt.start);
  return {
    family,
    protocol,
    original: there,
    reply: back,
    ...(state !== undefined && { state }),
    replied: (status & SEEN_REPLY) !== 0,
    ...((status & OFFLOADED) !== 0 && { offloaded: true }),
    ...(timeout !== undefined && { expires: bytes.readUInt32BE(timeout.start) }),
    ...(sent !== undefined && { sent }),
    ...(received !== undefined && { received }),
  };
}

/** nfgen_family stands four bytes before the attributes. */
function familyAt(bytes: Buffer, { start }: Range): IPFamily | undefined {
  const number = bytes.readUInt8(start - 4);
  return IP_FAMILIES.find((family) => ADDRESS_FAMILIES[family] === number);
}

function directionOf(bytes: Buffer, tuple: Tuple, family: IPFamily): Direction | undefined {
  const source = findAttribute(bytes, tuple.addresses, ADDRESS[family].source);
  const destination = findAttribute(bytes, tuple.addresses, ADDRESS[family].destination);
  if (source === undefined || destination === undefined) return undefined;
  const { sourcePort, destinationPort } = tuple;
  return {
    source: formatAddress(bytes, source),
    destination: formatAddress(bytes, destination),
    sourcePort,
    destinationPort,
  };
}

function stateName(bytes: Buffer, attributes: Range, protocol: Protocol): string | undefined {
  if (protocol === "UDP") return undefined;
  const info = findAttribute(bytes, attributes, entry.protocol);
  const own = info && findAttribute(bytes, info, STATE_OF[protocol]);
  const state = own && findAttribute(bytes, own, STATE_IN);
  return state && STATES[protocol][bytes.readUInt8(state.start)];
}

function volume(bytes: Buffer, counters: Range | undefined): Volume | undefined {
  const packets = counters && findAttribute(bytes, counters, COUNTER.packets);
  const octets = counters && findAttribute(bytes, counters, COUNTER.bytes);
  if (packets === undefined || octets === undefined) return undefined;
  return {
    bytes: Number(bytes.readBigUInt64BE(octets.start)),
    packets: Number(bytes.readBigUInt64BE(packets.start)),
  };
}
