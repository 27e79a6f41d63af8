/** Data types, address families and named objects of nftables, with the words that nft has for their values. */

import { addressBytes, bytesText, type IPFamily, ipv4Number, ipv4Text } from "@fairlead/base";

/** The data types of sets and maps, by their names in `nft`. */
export const DATA_TYPES = {
  ipv4_addr: { id: 7, length: 4, text: (hex: Hex) => ipv4Text(Number.parseInt(hex, 16)) },
  ipv6_addr: { id: 8, length: 16, text: (hex: Hex) => bytesText(bytesOf(hex)) },
  inet_proto: { id: 12, length: 1, text: (hex: Hex) => protocolName(Number.parseInt(hex, 16)) },
  inet_service: { id: 13, length: 2, text: (hex: Hex) => String(Number.parseInt(hex, 16)) },
  tcp_flag: { id: 15, length: 1, text: (hex: Hex) => tcpFlagsText(Number.parseInt(hex, 16)) },
  mark: { id: 19, length: 4, text: (hex: Hex) => `0x${hostNumber(hex).toString(16).padStart(8, "0")}` },
  /** What numgen and hashes give, in the byte order of the machine. */
  integer: { id: 4, length: 4, text: (hex: Hex) => String(hostNumber(hex)) },
  /** What `meta random` gives; nft calls it an integer, too. In network byte order, which intervals need. */
  random: { id: 4, length: 4, text: (hex: Hex) => String(Number.parseInt(hex, 16)) },
  ct_state: { id: 26, length: 4, text: (hex: Hex) => ctStateText(hostNumber(hex)) },
  ifname: { id: 41, length: 16, text: (hex: Hex) => JSON.stringify(hexText(hex)) },
} as const satisfies Readonly<Record<string, DataTypeFacts>>;

/** The name of a data type, as nft spells it. */
export type DataType = keyof typeof DATA_TYPES;

/** Bytes of a value in a register or a set: parts of a concatenation begin at multiples of four. */
export function lengthOf(types: readonly DataType[]): number {
  const [first] = types;
  if (types.length === 1 && first !== undefined) return DATA_TYPES[first].length;
  return types.reduce((sum, type) => sum + aligned(DATA_TYPES[type].length), 0);
}

/** The number of a concatenation: six bits for each part's type (nft's concat_type_alloc). */
export function typeId(types: readonly DataType[]): number {
  return types.reduce((id, type) => (id << 6) | DATA_TYPES[type].id, 0);
}

/** @returns undefined where a part has a type that is not read here */
export function typesOf(id: number): readonly DataType[] | undefined {
  const types: DataType[] = [];
  for (let rest = id; rest > 0; rest >>>= 6) {
    // The keys of a constant are its own.
    const type = (Object.keys(DATA_TYPES) as DataType[]).find((name) => DATA_TYPES[name].id === (rest & 0x3f));
    if (type === undefined) return undefined;
    types.unshift(type);
  }
  return types.length === 0 ? undefined : types;
}

/** Keys of intervals are in network byte order, also those that nft calls integers. */
export function keyTypesOf(types: readonly DataType[], isInterval: boolean): readonly DataType[] {
  return isInterval && types.length === 1 && types[0] === "integer" ? ["random"] : types;
}

/** A value as nft prints it: `10.96.0.1 . tcp . 443`. */
export function valueText(types: readonly DataType[], hex: Hex): string {
  let at = 0;
  const parts = types.map((type) => {
    const { length, text } = DATA_TYPES[type];
    const part = text(hex.slice(2 * at, 2 * (at + length)));
    at += aligned(length);
    return part;
  });
  return parts.join(" . ");
}

/** Transport protocols as nft prints them; others are numbers. */
export const PROTOCOLS: Readonly<Record<string, number>> = { icmp: 1, tcp: 6, udp: 17, "ipv6-icmp": 58, sctp: 132 };

/** NF_CT_STATE_BIT of each state (linux/netfilter/nf_conntrack_common.h). */
export const CT_STATES: Readonly<Record<string, number>> = {
  invalid: 0x1,
  established: 0x2,
  related: 0x4,
  new: 0x8,
  untracked: 0x40,
};

/** enum ip_conntrack_status of the same header. */
export const CT_STATUSES: Readonly<Record<string, number>> = {
  expected: 0x1,
  "seen-reply": 0x2,
  assured: 0x4,
  confirmed: 0x8,
  snat: 0x10,
  dnat: 0x20,
  dying: 0x200,
};

export const TCP_FLAGS: Readonly<Record<string, number>> = {
  fin: 0x1,
  syn: 0x2,
  rst: 0x4,
  psh: 0x8,
  ack: 0x10,
  urg: 0x20,
  ecn: 0x40,
  cwr: 0x80,
};

export const tcpFlagsText = (bits: number): string => (bits === 0 ? "0x0" : bitsText(TCP_FLAGS, bits));
export const ctStateText = (bits: number): string => bitsText(CT_STATES, bits);
export const ctStatusText = (bits: number): string => bitsText(CT_STATUSES, bits);

/** Bytes as lower-case hexadecimal digits: equal bytes are equal texts, and a text is a key of a map. */
export type Hex = string;

const DIGITS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Bytes as lower-case hex digits. */
export function hexOf(bytes: Iterable<number>): Hex {
  let text = "";
  for (const byte of bytes) text += DIGITS[byte & 0xff] ?? "";
  return text;
}

/** The bytes that hex digits stand for. */
export function bytesOf(hex: Hex): Uint8Array {
  return Uint8Array.from({ length: hex.length / 2 }, (_, at) => Number.parseInt(hex.slice(2 * at, 2 * at + 2), 16));
}

/** Parts of a concatenated key begin at multiples of four bytes; what is behind a shorter one is zero. */
export function padded(hex: Hex): Hex {
  return hex.padEnd(Math.ceil(hex.length / 8) * 8, "0");
}

/** @throws RangeError when it is not an address */
export function addressHex(address: string): Hex {
  const word = ipv4Number(address);
  if (word !== -1) return portHex(word >>> 16) + portHex(word & 0xffff);
  return hexOf(addressBytes(address));
}

/** 16 bits in network byte order, as packets have ports. */
export function portHex(port: number): Hex {
  return (DIGITS[port >>> 8] ?? "") + (DIGITS[port & 0xff] ?? "");
}

const LITTLE_ENDIAN = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;

/** 32 bits in the byte order of the machine, as registers hold marks and what numgen draws. */
export function hostHex(value: number): Hex {
  const bytes = [value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff];
  return hexOf(LITTLE_ENDIAN ? bytes.reverse() : bytes);
}

/** The number that `hostHex` wrote. */
export function hostNumber(hex: Hex): number {
  const bytes = [...bytesOf(hex)];
  const ordered = LITTLE_ENDIAN ? bytes.reverse() : bytes;
  return ordered.reduce((value, byte) => value * 256 + byte, 0);
}

/** The address families of tables that are read and written here. */
export type NftFamily = "ip" | "ip6";

/** What nftables calls an IP family. */
export const NFT_FAMILY: Readonly<Record<IPFamily, NftFamily>> = { IPv4: "ip", IPv6: "ip6" };

/** Which IP family a table of nftables is of. */
export const IP_FAMILY: Readonly<Record<NftFamily, IPFamily>> = { ip: "IPv4", ip6: "IPv6" };

/** NFPROTO_IPV4 and NFPROTO_IPV6, which are AF_INET and AF_INET6. */
export const FAMILY_NUMBERS: Readonly<Record<NftFamily, number>> = { ip: 2, ip6: 10 };

/** NFT_OBJECT_* of linux/netfilter/nf_tables.h that `nft` has statements for, by nft's names. */
export const OBJECT_TYPES = {
  counter: 1,
  quota: 2,
  "ct helper": 3,
  limit: 4,
  "ct timeout": 7,
  secmark: 8,
  "ct expectation": 9,
  synproxy: 10,
} as const;

/** A kind of object that a table has by name, and that rules apply to packets. */
export type NamedObject = keyof typeof OBJECT_TYPES;

// The keys of a constant are its own.
const NAMES = Object.keys(OBJECT_TYPES) as NamedObject[];

/** @returns undefined for a type that is not known here */
export function objectOf(type: number | undefined): NamedObject | undefined {
  return NAMES.find((name) => OBJECT_TYPES[name] === type);
}

export function isNamedObject(name: string): name is NamedObject {
  return Object.hasOwn(OBJECT_TYPES, name);
}

interface DataTypeFacts {
  /** enum datatypes of nft's include/datatype.h, which goes to the kernel with each set. */
  readonly id: number;
  /** Bytes. */
  readonly length: number;
  /** A value as nft prints it. */
  readonly text: (hex: Hex) => string;
}

function aligned(length: number): number {
  return (length + 3) & ~3;
}

/** The name up to its first zero byte. */
function hexText(hex: Hex): string {
  const bytes = bytesOf(hex);
  const end = bytes.indexOf(0);
  return String.fromCharCode(...bytes.subarray(0, end < 0 ? bytes.length : end));
}

function protocolName(number: number): string {
  return Object.entries(PROTOCOLS).find(([, known]) => known === number)?.[0] ?? String(number);
}

function bitsText(names: Readonly<Record<string, number>>, bits: number): string {
  const known = Object.entries(names).filter(([, bit]) => (bits & bit) !== 0);
  const rest = known.reduce((left, [, bit]) => left & ~bit, bits);
  return [...known.map(([name]) => name), ...(rest === 0 ? [] : [`0x${rest.toString(16)}`])].join(",");
}
