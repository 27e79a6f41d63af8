import { bytesText } from "@fairlead/base";
import { attribute, findAttribute, nest, type Range } from "@fairlead/netfilter/netlink";
import type { IPFamily, Protocol } from "../family.ts";
import { ADDRESS_FAMILIES } from "../netlink/address-families.ts";
import { encodeRequest, FLAGS } from "../netlink/messages.ts";
import type { ConntrackFlow } from "./conntrack.ts";

/** IPCTNL_MSG_CT_GET and IPCTNL_MSG_CT_DELETE of NFNL_SUBSYS_CTNETLINK (linux/netfilter/nfnetlink_conntrack.h). */
const TYPES = { get: 0x101, delete: 0x102 } as const;

/** Types of attributes, each within the one before it (the same header). */
export const entry = {
  ...{ original: 1, reply: 2, status: 3, protocol: 4, timeout: 7, sent: 9, received: 10 },
  ...{ id: 12, zone: 18, filter: 25 },
} as const;
const TUPLE = { address: 1, protocol: 2, zone: 3 } as const;
export const ADDRESS = {
  IPv4: { source: 1, destination: 2 },
  IPv6: { source: 3, destination: 4 },
} as const;
const PROTOCOL_PART = { number: 1, sourcePort: 2, destinationPort: 3 } as const;
const FILTER_PART = { original: 1 } as const;
/**
 * CTA_FILTER_FLAG(CTA_PROTO_NUM) of the kernel: entries must have the protocol of the tuple that goes with the filter.
 */
const byProtocol = Buffer.from([1 << 3, 0, 0, 0]);

/** The zone of the entries that are ours. Other networks track the same addresses in zones of their own (OVN). */
const zone0 = attribute(entry.zone, Buffer.from([0, 0]));

export const PROTOCOL_NUMBERS = { TCP: 6, UDP: 17, SCTP: 132 } as const satisfies Record<Protocol, number>;

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
 * The kernel reports the zone of both directions alongside them, that of one direction in it, and zone 0 not at all.
 */
export function isInOtherZone(bytes: Buffer, zone: Range | undefined): boolean {
  return zone !== undefined && bytes.readUInt16BE(zone.start) !== 0;
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

export interface Tuple {
  readonly addresses: Range;
  readonly protocol: number;
  readonly sourcePort: number;
  readonly destinationPort: number;
}

/** One direction of an entry; undefined where the protocol has no ports, or the direction is in another zone than 0. */
export function decodeTuple(bytes: Buffer, within: Range | undefined): Tuple | undefined {
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

export function formatAddress(bytes: Buffer, { start, end }: Range): string {
  if (end - start === 4) return `${bytes[start]}.${bytes[start + 1]}.${bytes[start + 2]}.${bytes[start + 3]}`;
  return bytesText(bytes.subarray(start, end));
}
