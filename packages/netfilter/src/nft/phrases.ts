/** What a rule says as nft writes it: fields, operators and values. */

import { parseAddressLeniently } from "@fairlead/base";
import type { Register, Verdict } from "./expressions/kind.ts";
import { ADDRESS_TYPES, CT_DIRECTIONS, CT_TUPLE } from "./expressions/loads.ts";
import type { Expression } from "./expressions/table.ts";
import {
  addressHex,
  CT_STATES,
  CT_STATUSES,
  DATA_TYPES,
  type DataType,
  type Hex,
  hexOf,
  hostHex,
  type NamedObject,
  PROTOCOLS,
  padded,
  portHex,
  TCP_FLAGS,
} from "./types.ts";

/** What a rule compares, looks up or draws. */
export type Operand =
  /** As nft writes it: `ip saddr`, `meta l4proto`, `th dport`, `ct state`, `fib saddr type`. */
  | { readonly kind: "field"; readonly name: string }
  | { readonly kind: "numgen"; readonly modulus: number }
  | { readonly kind: "concat"; readonly parts: readonly Operand[] };

/** An element as a listing has it; parts of keys and values stand with dots between them. */
export interface ListedElement {
  readonly key: string;
  readonly value?: string | Verdict;
  readonly timeout?: number;
  readonly expires?: number;
  readonly comment?: string;
}

/** A set by its name, or the elements of an anonymous one. */
export type ListedSet = string | readonly ListedElement[];

/** Operators as nft writes them; "in": one of these bits; "!": none of them. */
export type Operator = "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "!";

/** What a listing says with a rule, one step of it. */
export type Phrase =
  | {
      readonly kind: "match";
      readonly left: Operand;
      /** Bits of the left side that count. */
      readonly mask?: number;
      readonly operator: Operator;
      /** A value, several bits, or a set. */
      readonly right: { readonly value: string } | { readonly set: ListedSet };
    }
  | { readonly kind: "vmap"; readonly key: Operand; readonly set: ListedSet }
  | { readonly kind: "verdict"; readonly verdict: Verdict }
  | { readonly kind: "mark"; readonly operator: "|" | "^" | "="; readonly bits: number }
  /** Of the packet or its connection: the bits of `keep` stay, and those of `bits` are set. */
  | { readonly kind: "mark-within"; readonly of: "meta" | "ct"; readonly keep: number; readonly bits: number }
  | { readonly kind: "dnat"; readonly address: string; readonly port?: number }
  | { readonly kind: "dnat-map"; readonly key: Operand; readonly set: ListedSet }
  | { readonly kind: "masquerade"; readonly fullyRandom: boolean }
  | { readonly kind: "reject"; readonly with: "port-unreachable" | "tcp-reset" }
  | {
      readonly kind: "remember";
      readonly operation: "add" | "update" | "delete";
      readonly set: string;
      readonly key: Operand;
      /** Of a map. */
      readonly value?: Operand;
      readonly timeout?: number;
    }
  | { readonly kind: "counter" }
  | { readonly kind: "flow-offload"; readonly flowtable: string }
  /** A named object, or the one that a map has for the key. */
  | {
      readonly kind: "object";
      readonly object: NamedObject;
      readonly to: string | { readonly key: Operand; readonly set: ListedSet };
    }
  | { readonly kind: "unknown"; readonly text: string };

/** A field by its name in a listing: how it is loaded, and what its values are. */
export interface FieldFacts {
  readonly load: (to: Register) => Expression;
  readonly type: DataType;
  /** Names that stand for numbers. */
  readonly words?: Readonly<Record<string, number>>;
  /** The words are bits, of which a packet can have several. */
  readonly bits?: "state" | "status" | "flags";
  /** Default: four, in the byte order of the machine. */
  readonly bytes?: 1;
  /** Only packets of this protocol have it, and the listing leaves out that the rule compares that first. */
  readonly protocol?: "tcp" | "udp" | "sctp";
}

const ports = (["th", "tcp", "udp", "sctp"] as const).flatMap((header) =>
  (["sport", "dport"] as const).map((field): readonly [string, FieldFacts] => [
    `${header} ${field}`,
    {
      load: payload("transport", field === "sport" ? 0 : 2, 2),
      type: "inet_service",
      ...(header !== "th" && { protocol: header }),
    },
  ]),
);

const tuples = (Object.keys(CT_TUPLE) as (keyof typeof CT_TUPLE)[]).flatMap((key) =>
  (["original", "reply"] as const).map((direction): readonly [string, FieldFacts] => [
    `ct ${direction} ${key}`,
    { load: (to) => ({ kind: "ct", key, direction, to }), type: CT_TUPLE[key].type },
  ]),
);

const FIELDS: ReadonlyMap<string, FieldFacts> = new Map([
  ["ip saddr", { load: payload("network", 12, 4), type: "ipv4_addr" }],
  ["ip daddr", { load: payload("network", 16, 4), type: "ipv4_addr" }],
  ["ip6 saddr", { load: payload("network", 8, 16), type: "ipv6_addr" }],
  ["ip6 daddr", { load: payload("network", 24, 16), type: "ipv6_addr" }],
  ["meta l4proto", { load: (to: Register) => ({ kind: "meta", key: "l4proto", to }), type: "inet_proto" }],
  ["meta mark", { load: (to: Register) => ({ kind: "meta", key: "mark", to }), type: "mark" }],
  ["meta random", { load: (to: Register) => ({ kind: "meta", key: "random", to }), type: "random" }],
  ["iifname", { load: (to: Register) => ({ kind: "meta", key: "iifname", to }), type: "ifname" }],
  ["oifname", { load: (to: Register) => ({ kind: "meta", key: "oifname", to }), type: "ifname" }],
  [
    "ct state",
    { load: (to: Register) => ({ kind: "ct", key: "state", to }), type: "ct_state", bits: "state", words: CT_STATES },
  ],
  [
    "ct status",
    {
      load: (to: Register) => ({ kind: "ct", key: "status", to }),
      type: "integer",
      bits: "status",
      words: CT_STATUSES,
    },
  ],
  ["ct mark", { load: (to: Register) => ({ kind: "ct", key: "mark", to }), type: "mark" }],
  [
    "ct direction",
    {
      load: (to: Register) => ({ kind: "ct", key: "direction", to }),
      type: "integer",
      bytes: 1,
      words: CT_DIRECTIONS,
    },
  ],
  [
    "fib saddr type",
    { load: (to: Register) => ({ kind: "fib", of: "saddr", to }), type: "integer", words: ADDRESS_TYPES },
  ],
  [
    "fib daddr type",
    { load: (to: Register) => ({ kind: "fib", of: "daddr", to }), type: "integer", words: ADDRESS_TYPES },
  ],
  ...tuples,
  ...ports,
  [
    "tcp flags",
    { load: payload("transport", 13, 1), type: "tcp_flag", bytes: 1, bits: "flags", words: TCP_FLAGS, protocol: "tcp" },
  ],
] satisfies readonly (readonly [string, FieldFacts])[]);

/** @returns undefined: a field that is not known here */
export function fieldFacts(name: string): FieldFacts | undefined {
  return FIELDS.get(name.replace(/^meta ([io]ifname)$/, "$1"));
}

/** What a listing has that is not known here; the part that has it is kept as its text. */
export class NotKnown extends Error {
  override readonly name = "NotKnown";
}

/** Values by how nft writes them, the reverse of `DATA_TYPES`' `text`. */
const READERS: Readonly<Record<DataType, (text: string) => Hex | undefined>> = {
  ipv4_addr: (text) => (familyOf(text) === "IPv4" ? addressHex(text) : undefined),
  ipv6_addr: (text) => (familyOf(text) === "IPv6" ? addressHex(text) : undefined),
  inet_proto: (text) => number(PROTOCOLS[text] ?? text, 0xff, (value) => hexOf([value])),
  inet_service: (text) => number(text, 0xffff, portHex),
  tcp_flag: (text) => flagsHex(text),
  mark: (text) => number(text, 0xffff_ffff, hostHex),
  integer: (text) => number(text, 0xffff_ffff, hostHex),
  random: (text) => number(text, 0xffff_ffff, (value) => portHex(value >>> 16) + portHex(value & 0xffff)),
  ct_state: (text) => number(CT_STATES[text] ?? text, 0xffff_ffff, hostHex),
  ifname: (text) => nameHex(text),
};

/** @throws NotKnown when it is no value of these types */
export function valueHex(types: readonly DataType[], text: string): Hex {
  const parts = text.split(" . ");
  const [first] = types;
  if (parts.length !== types.length || first === undefined) throw new NotKnown(text);
  const hexes = types.map((type, at) => {
    const hex = READERS[type](parts[at] ?? "");
    if (hex === undefined) throw new NotKnown(text);
    return hex;
  });
  return types.length === 1 ? hexes.join("") : hexes.map(padded).join("");
}

/** @throws NotKnown for types that are not known here */
export function dataTypes(names: readonly string[]): readonly DataType[] {
  return names.map((name) => {
    // It is a name for `integer` only here.
    if (!isDataType(name) || name === "random") throw new NotKnown(name);
    return name;
  });
}

function payload(base: "network" | "transport", offset: number, length: number): FieldFacts["load"] {
  return (to) => ({ kind: "payload", base, offset, length, to });
}

function isDataType(name: string): name is DataType {
  return Object.hasOwn(DATA_TYPES, name);
}

function familyOf(text: string) {
  return parseAddressLeniently(text)?.family;
}

function number(text: string | number, most: number, hex: (value: number) => Hex): Hex | undefined {
  const value = typeof text === "number" ? text : /^(0x[\da-f]+|\d+)$/i.test(text) ? Number(text) : undefined;
  return value === undefined || value > most ? undefined : hex(value);
}

/** `syn,ack`, or as the elements of a set have it, `syn | ack`. */
function flagsHex(text: string): Hex | undefined {
  const bits = text.split(/,| \| /).map((name) => TCP_FLAGS[name]);
  const known = bits.filter((bit) => bit !== undefined);
  if (known.length < bits.length) return number(text, 0xff, (value) => hexOf([value]));
  return hexOf([known.reduce((all, bit) => all | bit, 0)]);
}

function nameHex(text: string): Hex | undefined {
  const bytes = new TextEncoder().encode(text);
  return bytes.length > DATA_TYPES.ifname.length ? undefined : hexOf(bytes).padEnd(2 * DATA_TYPES.ifname.length, "0");
}
