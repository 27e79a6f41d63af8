import { CT_DIRECTIONS, CT_TUPLE } from "../expressions/ct.ts";
import { ADDRESS_TYPES } from "../expressions/fib.ts";
import type { Expression } from "../expressions/index.ts";
import type { Register } from "../expressions/registers.ts";
import type { DataType } from "../types.ts";
import { CT_STATES, CT_STATUSES, TCP_FLAGS } from "../words.ts";

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

function payload(base: "network" | "transport", offset: number, length: number): FieldFacts["load"] {
  return (to) => ({ kind: "payload", base, offset, length, to });
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
