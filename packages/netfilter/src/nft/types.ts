import { bytesText, ipv4Text } from "@fairlead/base";
import { bytesOf, type Hex, hostNumber } from "./hex.ts";
import { ctStateText, protocolName, tcpFlagsText } from "./words.ts";

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
  ct_state: { id: 26, length: 4, text: (hex: Hex) => ctStateText(hostNumber(hex)) },
  ifname: { id: 41, length: 16, text: (hex: Hex) => JSON.stringify(hexText(hex)) },
} as const satisfies Readonly<Record<string, DataTypeFacts>>;

export interface DataTypeFacts {
  /** enum datatypes of nft's include/datatype.h, which goes to the kernel with each set. */
  readonly id: number;
  /** Bytes. */
  readonly length: number;
  /** A value as nft prints it. */
  readonly text: (hex: Hex) => string;
}

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

function aligned(length: number): number {
  return (length + 3) & ~3;
}

/** The name up to its first zero byte. */
function hexText(hex: Hex): string {
  const bytes = bytesOf(hex);
  const end = bytes.indexOf(0);
  return String.fromCharCode(...bytes.subarray(0, end < 0 ? bytes.length : end));
}
