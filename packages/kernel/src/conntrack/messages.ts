/** Messages of ctnetlink: entries, their tuples and states. */

import { bytesText, IP_FAMILIES } from "@fairlead/base";
import { attribute, findAttribute, nest, type Range } from "@fairlead/netfilter/netlink";
import type { IPFamily, Protocol } from "../family.ts";
import { ADDRESS_FAMILIES, encodeRequest, FLAGS } from "../netlink/messages.ts";
import type { Connection, ConntrackFlow, Direction, Volume } from "./flows.ts";

/** Types of attributes, each within the one before it (the same header). */
export const entry = {
  ...{ original: 1, reply: 2, status: 3, protocol: 4, timeout: 7, sent: 9, received: 10 },
  ...{ id: 12, zone: 18, filter: 25 },
} as const;

const PROTOCOL_PART = { number: 1, sourcePort: 2, destinationPort: 3 } as const;

const PROTOCOL_NUMBERS = { TCP: 6, UDP: 17, SCTP: 132 } as const satisfies Record<Protocol, number>;

const FILTER_PART = { original: 1 } as const;
/**
 * CTA_FILTER_FLAG(CTA_PROTO_NUM) of the kernel: entries must have the protocol of the tuple that goes with the filter.
 */
const byProtocol = Buffer.from([1 << 3, 0, 0, 0]);

const TUPLE = { address: 1, protocol: 2, zone: 3 } as const;

/** The zone of the entries that are ours. Other networks track the same addresses in zones of their own (OVN). */
const zone0 = attribute(entry.zone, Buffer.from([0, 0]));

/** IPCTNL_MSG_CT_GET and IPCTNL_MSG_CT_DELETE of NFNL_SUBSYS_CTNETLINK (linux/netfilter/nfnetlink_conntrack.h). */
const TYPES = { get: 0x101, delete: 0x102 } as const;

/**
 * Asks for all entries of a family and protocol in zone 0. Old kernels give those of all zones, before 5.8 those of all
 * protocols.
 *
 * @param zones whether the kernel knows of zones; without, all of its entries are in zone 0
 */
export function encodeDump(family: IPFamily, protocol: Protocol, zones = true): Buffer {
  const number = attribute(PROTOCOL_PART.number, Buffer.from([PROTOCOL_NUMBERS[protocol]]));
  const attributes = [
    nest(entry.filter, attribute(FILTER_PART.original, byProtocol)),
    nest(entry.original, nest(TUPLE.protocol, number)),
    ...(zones ? [zone0] : []),
  ];
  return encodeRequest({
    type: TYPES.get,
    flags: FLAGS.request | FLAGS.dump,
    addressFamily: ADDRESS_FAMILIES[family],
    attributes: Buffer.concat(attributes),
  });
}

const ADDRESS = {
  IPv4: { source: 1, destination: 2 },
  IPv6: { source: 3, destination: 4 },
} as const;

/** What is read of an entry; undefined for one of another protocol, or of another zone than 0. */
export function decodeEntry(
  bytes: Buffer,
  within: Range,
  family: IPFamily,
  protocol: Protocol,
): ConntrackFlow | undefined {
  const original = decodeTuple(bytes, findAttribute(bytes, within, entry.original));
  const reply = decodeTuple(bytes, findAttribute(bytes, within, entry.reply));
  if (original?.protocol !== PROTOCOL_NUMBERS[protocol] || reply === undefined) return undefined;
  if (isInOtherZone(bytes, findAttribute(bytes, within, entry.zone))) return undefined;
  const destination = findAttribute(bytes, original.addresses, ADDRESS[family].destination);
  const client = findAttribute(bytes, original.addresses, ADDRESS[family].source);
  const source = findAttribute(bytes, reply.addresses, ADDRESS[family].source);
  if (destination === undefined || source === undefined) return undefined;
  return {
    family,
    protocol,
    originalDestination: formatAddress(bytes, destination),
    originalPort: original.destinationPort,
    ...(client !== undefined && { originalSource: formatAddress(bytes, client) }),
    replySource: formatAddress(bytes, source),
    replyPort: reply.sourcePort,
  };
}

/**
 * Deletes the entry of zone 0 whose attributes those are, and no newer one of the same addresses and ports.
 *
 * @param zones as in `encodeDump`
 */
export function encodeDeletion(bytes: Buffer, within: Range, family: IPFamily, zones = true): Buffer {
  const names = [entry.original, entry.id] as const;
  const attributes = names.flatMap((type) => {
    const found = findAttribute(bytes, within, type);
    if (found === undefined) return [];
    const payload = bytes.subarray(found.start, found.end);
    return [type === entry.original ? nest(type, payload) : attribute(type, payload)];
  });
  return encodeRequest({
    type: TYPES.delete,
    flags: FLAGS.request,
    addressFamily: ADDRESS_FAMILIES[family],
    attributes: Buffer.concat([...attributes, ...(zones ? [zone0] : [])]),
  });
}

const PROTOCOLS = ["TCP", "UDP", "SCTP"] as const satisfies readonly Protocol[];

/** IPS_SEEN_REPLY, IPS_OFFLOAD and IPS_HW_OFFLOAD (linux/netfilter/nf_conntrack_common.h). */
const SEEN_REPLY = 1 << 1;
const OFFLOADED = (1 << 14) | (1 << 15);

/**
 * An entry of connection tracking with all that the kernel reports of it; undefined for one of a protocol without
 * ports, or of another zone than 0.
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

/** The kernel's states by number, as conntrack calls them (tcp_conntrack_names, sctp_conntrack_names). */
export const STATES = {
  TCP: [
    ...["NONE", "SYN_SENT", "SYN_RECV", "ESTABLISHED", "FIN_WAIT", "CLOSE_WAIT"],
    ...["LAST_ACK", "TIME_WAIT", "CLOSE", "SYN_SENT2"],
  ],
  SCTP: [
    ...["NONE", "CLOSED", "COOKIE_WAIT", "COOKIE_ECHOED", "ESTABLISHED", "SHUTDOWN_SENT"],
    ...["SHUTDOWN_RECD", "SHUTDOWN_ACK_SENT", "HEARTBEAT_SENT", "HEARTBEAT_ACKED"],
  ],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/**
 * The kernel reports the zone of both directions alongside them, that of one direction in it, and zone 0 not at all.
 */
function isInOtherZone(bytes: Buffer, zone: Range | undefined): boolean {
  return zone !== undefined && bytes.readUInt16BE(zone.start) !== 0;
}

interface Tuple {
  readonly addresses: Range;
  readonly protocol: number;
  readonly sourcePort: number;
  readonly destinationPort: number;
}

/** One direction of an entry; undefined where the protocol has no ports, or the direction is in another zone than 0. */
function decodeTuple(bytes: Buffer, within: Range | undefined): Tuple | undefined {
  if (within === undefined) return undefined;
  const addresses = findAttribute(bytes, within, TUPLE.address);
  const part = findAttribute(bytes, within, TUPLE.protocol);
  if (addresses === undefined || part === undefined) return undefined;
  if (isInOtherZone(bytes, findAttribute(bytes, within, TUPLE.zone))) return undefined;
  const number = findAttribute(bytes, part, PROTOCOL_PART.number);
  const source = findAttribute(bytes, part, PROTOCOL_PART.sourcePort);
  const destination = findAttribute(bytes, part, PROTOCOL_PART.destinationPort);
  if (number === undefined || source === undefined || destination === undefined) return undefined;
  return {
    addresses,
    protocol: bytes.readUInt8(number.start),
    sourcePort: bytes.readUInt16BE(source.start),
    destinationPort: bytes.readUInt16BE(destination.start),
  };
}

function formatAddress(bytes: Buffer, { start, end }: Range): string {
  if (end - start === 4) return `${bytes[start]}.${bytes[start + 1]}.${bytes[start + 2]}.${bytes[start + 3]}`;
  return bytesText(bytes.subarray(start, end));
}

/** CTA_PROTOINFO_TCP and CTA_PROTOINFO_SCTP, with the state in each (linux/netfilter/nfnetlink_conntrack.h). */
const STATE_OF = { TCP: 1, SCTP: 3 } as const;
const STATE_IN = 1;
const COUNTER = { packets: 1, bytes: 2 } as const;

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
