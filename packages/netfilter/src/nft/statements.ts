/** Parts of rules as statements of nftables: what a packet is, and what becomes of it. */

import { ADDRESS_BITS, addressWords, masked, prefixLengthOf, prefixMask, wordsText } from "@fairlead/base";
import { PORT_UNREACHABLE } from "./expressions/actions.ts";
import type { Register, Verdict } from "./expressions/kind.ts";
import { ADDRESS_TYPES, CT_DIRECTIONS } from "./expressions/loads.ts";
import type { Expression } from "./expressions/table.ts";
import {
  addressHex,
  CT_STATES,
  CT_STATUSES,
  type Hex,
  hexOf,
  hostHex,
  IP_FAMILY,
  type NftFamily,
  PROTOCOLS,
  portHex,
  TCP_FLAGS,
} from "./types.ts";

/** A field of the packet, as a key begins with it or goes on with it. */
export type Field = "saddr" | "daddr" | "l4proto" | "dport";

/** Where a family's addresses are in its header, and how many bytes they have. */
const ADDRESSES = {
  ip: { saddr: 12, daddr: 16, length: 4 },
  ip6: { saddr: 8, daddr: 24, length: 16 },
} as const;

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

const ZERO = hostHex(0);

/** `ct state new`. */
export const newConnection: readonly Expression[] = anyBit("state", CT_STATES["new"] ?? 0);
/** `ct status dnat`. */
export const translatedConnection: readonly Expression[] = anyBit("status", CT_STATUSES["dnat"] ?? 0);
/** `ct state established`. */
export const establishedConnection: readonly Expression[] = anyBit("state", CT_STATES["established"] ?? 0);

/** `ct original ip daddr @set`: where the connection's first packet went to. */
export function originallyTo(family: NftFamily, set: string): readonly Expression[] {
  return [originalAddress(family, "daddr"), { kind: "lookup", set, from: 0 }];
}

/** `ct original ip saddr @set`: the sender. */
export function originallyFrom(family: NftFamily, set: string): readonly Expression[] {
  return [originalAddress(family, "saddr"), { kind: "lookup", set, from: 0 }];
}

/**
 * `meta l4proto . ct original proto-dst @set`, with `ct original ip daddr` before them where `withAddress`: the service
 * that the connection's first packet was sent to.
 */
export function originalService(family: NftFamily, set: string, withAddress: boolean): readonly Expression[] {
  const from = withAddress ? ADDRESSES[family].length / 4 : 0;
  return [
    ...(withAddress ? [originalAddress(family, "daddr")] : []),
    { kind: "meta", key: "l4proto", to: from },
    { kind: "ct", key: "proto-dst", direction: "original", to: from + 1 },
    { kind: "lookup", set, from: 0 },
  ];
}

/** `ct state invalid`. */
export const invalidPacket: readonly Expression[] = anyBit("state", CT_STATES["invalid"] ?? 0);

/** `ct direction reply`. */
export const answer: readonly Expression[] = directionIs("reply");
/** `ct direction original`: the packet comes from where the connection's first one came. */
export const originalDirection: readonly Expression[] = directionIs("original");

/** `meta mark & 0x4000 != 0`. */
export function hasMark(bits: number): readonly Expression[] {
  return [
    { kind: "meta", key: "mark", to: 0 },
    { kind: "bitwise", from: 0, to: 0, mask: hostHex(bits), xor: ZERO },
    { kind: "cmp", operator: "!=", from: 0, value: ZERO },
  ];
}

/** `meta mark set meta mark | 0x4000`. */
export function setMark(bits: number): readonly Expression[] {
  return changeMark(hostHex(~bits >>> 0), hostHex(bits));
}

/** `meta mark set meta mark ^ 0x4000`. */
export function flipMark(bits: number): readonly Expression[] {
  return changeMark("ffffffff", hostHex(bits));
}

/** `ct mark & 0x3000 == 0x1000`. */
export function connectionMarkIs(mark: number, mask: number): readonly Expression[] {
  return [
    { kind: "ct", key: "mark", to: 0 },
    { kind: "bitwise", from: 0, to: 0, mask: hostHex(mask), xor: ZERO },
    { kind: "cmp", operator: "==", from: 0, value: hostHex(mark) },
  ];
}

/** `ct mark set ct mark & ~0x3000 | 0x1000`. */
export function setConnectionMark(mark: number, mask: number): readonly Expression[] {
  return [
    { kind: "ct", key: "mark", to: 0 },
    { kind: "bitwise", from: 0, to: 0, mask: hostHex(~mask >>> 0), xor: hostHex(mark) },
    { kind: "ct", key: "mark", from: 0 },
  ];
}

/** `meta mark set meta mark & ~0x3000 | 0x1000`. */
export function setMarkWithin(mark: number, mask: number): readonly Expression[] {
  return changeMark(hostHex(~mask >>> 0), hostHex(mark));
}

/** `meta mark set 0x4000`. */
export function replaceMark(mark: number): readonly Expression[] {
  return [
    { kind: "immediate", to: 0, value: hostHex(mark) },
    { kind: "meta", key: "mark", from: 0 },
  ];
}

/** `dnat to 10.0.0.1:80`. */
export function dnatTo(family: NftFamily, address: string, port: number): readonly Expression[] {
  const behind = ADDRESSES[family].length / 4;
  return [
    { kind: "immediate", to: 0, value: addressHex(address) },
    { kind: "immediate", to: behind, value: portHex(port) },
    { kind: "nat", family, address: 0, port: behind },
  ];
}

/** Ends the rule with a verdict. */
export function verdict(of: Verdict): readonly Expression[] {
  return [{ kind: "immediate", verdict: of }];
}

/** Goes to a chain and comes back at its end. */
export const jump = (chain: string): readonly Expression[] => verdict({ kind: "jump", chain });
/** Goes to a chain for good. */
export const goTo = (chain: string): readonly Expression[] => verdict({ kind: "goto", chain });

/** `reject`: ICMP's "port unreachable". */
export function rejectPacket(family: NftFamily): readonly Expression[] {
  return [{ kind: "reject", with: "port-unreachable", code: PORT_UNREACHABLE[family] }];
}

/** `reject with tcp reset`. */
export const RESET: readonly Expression[] = [{ kind: "reject", with: "tcp-reset", code: 0 }];

/** `masquerade fully-random`. */
export const MASQUERADE: readonly Expression[] = [{ kind: "masq", fullyRandom: true }];

function wordHex(word: number): Hex {
  return hexOf([word >>> 24, (word >>> 16) & 0xff, (word >>> 8) & 0xff, word & 0xff]);
}

function flagsHex(...names: readonly string[]): Hex {
  return hexOf([names.reduce((bits, name) => bits | (TCP_FLAGS[name] ?? 0), 0)]);
}

function originalAddress(family: NftFamily, field: "saddr" | "daddr"): Expression {
  return { kind: "ct", key: `${family} ${field}`, direction: "original", to: 0 };
}

function anyBit(key: "state" | "status", bits: number): readonly Expression[] {
  return [
    { kind: "ct", key, to: 0 },
    { kind: "bitwise", from: 0, to: 0, mask: hostHex(bits), xor: ZERO },
    { kind: "cmp", operator: "!=", from: 0, value: ZERO },
  ];
}

function directionIs(direction: keyof typeof CT_DIRECTIONS): readonly Expression[] {
  return [
    { kind: "ct", key: "direction", to: 0 },
    { kind: "cmp", operator: "==", from: 0, value: hexOf([CT_DIRECTIONS[direction]]) },
  ];
}

function changeMark(mask: Hex, xor: Hex): readonly Expression[] {
  return [
    { kind: "meta", key: "mark", to: 0 },
    { kind: "bitwise", from: 0, to: 0, mask, xor },
    { kind: "meta", key: "mark", from: 0 },
  ];
}
