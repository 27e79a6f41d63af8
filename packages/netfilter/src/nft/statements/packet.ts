import { ADDRESS_BITS, addressWords, masked, prefixLengthOf, prefixMask, wordsText } from "@fairlead/base";
import { ADDRESS_TYPES } from "../expressions/fib.ts";
import type { Expression } from "../expressions/index.ts";
import type { Register } from "../expressions/registers.ts";
import { IP_FAMILY, type NftFamily } from "../family.ts";
import { addressHex, type Hex, hexOf, hostHex, portHex } from "../hex.ts";
import { PROTOCOLS, TCP_FLAGS } from "../words.ts";

/** Where a family's addresses are in its header, and how many bytes they have. */
export const ADDRESSES = {
  ip: { saddr: 12, daddr: 16, length: 4 },
  ip6: { saddr: 8, daddr: 24, length: 16 },
} as const;

/** A field of the packet, as a key begins with it or goes on with it. */
export type Field = "saddr" | "daddr" | "l4proto" | "dport";

/** Loads one field into a register. */
export function load(family: NftFamily, field: Field, to: Register): Expression {
  if (field === "l4proto") return { kind: "meta", key: "l4proto", to };
  if (field === "dport") return { kind: "payload", base: "transport", offset: 2, length: 2, to };
  const { length, [field]: offset } = ADDRESSES[family];
  return { kind: "payload", base: "network", offset, length, to };
}

/**
 * Loads fields one behind the other, from a register on, as a concatenated key has them; `next` is the register behind
 * them.
 */
export function loadKey(
  family: NftFamily,
  fields: readonly Field[],
  from: Register = 0,
): { expressions: Expression[]; next: Register } {
  let next = from;
  const expressions = fields.map((field) => {
    const expression = load(family, field, next);
    next += field === "saddr" || field === "daddr" ? ADDRESSES[family].length / 4 : 1;
    return expression;
  });
  return { expressions, next };
}

/** `ip daddr . meta l4proto . th dport vmap @set`, `ip daddr @set`, … */
export function lookUp(
  family: NftFamily,
  fields: readonly Field[],
  set: string,
  to?: "verdict",
): readonly Expression[] {
  const { expressions } = loadKey(family, fields);
  return [...expressions, { kind: "lookup", set, from: 0, ...(to && { to }) }];
}

/**
 * `ip saddr 10.144.0.0/16`: compares the bytes that the prefix has whole, and masks where it ends within one, as `nft`
 * does.
 *
 * @throws RangeError when it is not a CIDR
 */
export function addressIn(
  family: NftFamily,
  field: "saddr" | "daddr",
  cidr: string,
  operator: "==" | "!=" = "==",
): readonly Expression[] {
  const length = prefixLengthOf(cidr);
  const words = addressWords(cidr.split("/")[0] ?? "");
  const network = addressHex(wordsText(masked(words, prefixMask(words.length, length))));
  const { [field]: offset, length: whole } = ADDRESSES[family];
  if (length % 8 === 0 && length > 0) {
    const bytes = length / 8;
    return [
      { kind: "payload", base: "network", offset, length: bytes, to: 0 },
      { kind: "cmp", operator, from: 0, value: network.slice(0, 2 * bytes) },
    ];
  }
  const mask = prefixMask(words.length, length).map(wordHex).join("");
  return [
    { kind: "payload", base: "network", offset, length: whole, to: 0 },
    { kind: "bitwise", from: 0, to: 0, mask, xor: "0".repeat(ADDRESS_BITS[IP_FAMILY[family]] / 4) },
    { kind: "cmp", operator, from: 0, value: network },
  ];
}

function wordHex(word: number): Hex {
  return hexOf([word >>> 24, (word >>> 16) & 0xff, (word >>> 8) & 0xff, word & 0xff]);
}

/** `th dport 80`; of packets whose protocol has ports. */
export function destinationPortIs(port: number): readonly Expression[] {
  return [load("ip", "dport", 0), { kind: "cmp", operator: "==", from: 0, value: portHex(port) }];
}

/** `fib saddr type local`. */
export function addressTypeIs(
  of: "saddr" | "daddr",
  type: keyof typeof ADDRESS_TYPES,
  operator: "==" | "!=" = "==",
): readonly Expression[] {
  return [
    { kind: "fib", of, to: 0 },
    { kind: "cmp", operator, from: 0, value: hostHex(ADDRESS_TYPES[type] ?? 0) },
  ];
}

/** `meta l4proto tcp`. */
export function protocolIs(protocol: keyof typeof PROTOCOLS): readonly Expression[] {
  return [
    { kind: "meta", key: "l4proto", to: 0 },
    { kind: "cmp", operator: "==", from: 0, value: hexOf([PROTOCOLS[protocol] ?? 0]) },
  ];
}

/** `tcp flags != syn / fin,syn,rst,ack`, of TCP packets: those that do not begin a connection. */
export const pastTheFirst: readonly Expression[] = [
  { kind: "payload", base: "transport", offset: 13, length: 1, to: 0 },
  { kind: "bitwise", from: 0, to: 0, mask: flagsHex("fin", "syn", "rst", "ack"), xor: "00" },
  { kind: "cmp", operator: "!=", from: 0, value: flagsHex("syn") },
];

function flagsHex(...names: readonly string[]): Hex {
  return hexOf([names.reduce((bits, name) => bits | (TCP_FLAGS[name] ?? 0), 0)]);
}

/** `iifname "eth0"`; a name that ends in `*` is a prefix. */
export function interfaceIs(
  key: "iifname" | "oifname",
  name: string,
  operator: "==" | "!=" = "==",
): readonly Expression[] {
  const bytes = hexOf(new TextEncoder().encode(name.replace(/\*$/, "")));
  const value = name.endsWith("*") ? bytes : bytes.padEnd(32, "0");
  return [
    { kind: "meta", key, to: 0 },
    { kind: "cmp", operator, from: 0, value },
  ];
}
