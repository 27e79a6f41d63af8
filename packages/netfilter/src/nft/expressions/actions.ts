/** Expressions that do something with the packet, and those that are not known. */

import { FAMILY_NUMBERS, type NamedObject, type NftFamily, OBJECT_TYPES, objectOf } from "../types.ts";
import { type ExpressionKind, type Register, registerNumber, registerOf } from "./kind.ts";

/** enum nft_counter_attributes. */
export const COUNTER = { bytes: 1, packets: 2 } as const;

/** Counts the packets that come by. How many have is not a part of the rule. */
export interface Counter {
  readonly kind: "counter";
}

export const counter: ExpressionKind<Counter> = {
  name: "counter",
  encode: (_, writer) => void writer.u64(COUNTER.bytes, 0n).u64(COUNTER.packets, 0n),
  decode: () => ({ kind: "counter" }),
  print: (_, printer) => printer.say("counter packets 0 bytes 0"),
};

/**
 * Applies a named object of the table to the packet: the one of that name, or the one that a map has for what is in
 * the registers from `from` on (the rule ends where the map has none).
 */
export type Objref =
  | { readonly kind: "objref"; readonly object: NamedObject; readonly name: string }
  | { readonly kind: "objref"; readonly map: string; readonly from: Register };

/** NFTA_OBJREF_*. */
const OBJREF_DATA = { type: 1, name: 2, from: 3, map: 4 } as const;

export const objref: ExpressionKind<Objref> = {
  name: "objref",
  encode(expression, writer) {
    if ("map" in expression) {
      writer.u32(OBJREF_DATA.from, registerNumber(expression.from)).text(OBJREF_DATA.map, expression.map);
    } else writer.u32(OBJREF_DATA.type, OBJECT_TYPES[expression.object]).text(OBJREF_DATA.name, expression.name);
  },
  decode(data) {
    const [object, name] = [objectOf(data.u32(OBJREF_DATA.type)), data.text(OBJREF_DATA.name)];
    const [from, map] = [data.u32(OBJREF_DATA.from), data.text(OBJREF_DATA.map)];
    if (from !== undefined && map !== undefined) return { kind: "objref", map, from: registerOf(from) };
    return object === undefined || name === undefined ? undefined : { kind: "objref", object, name };
  },
  print(expression, printer) {
    if ("object" in expression) {
      printer.say(`${words(expression.object)} "${expression.name}"`);
      return;
    }
    const { text, keyLength, objects } = printer.set(expression.map);
    const key = printer.value(expression.from, keyLength).text;
    printer.say(`${objects === undefined ? "objref" : words(objects)} ${key} map ${text}`);
  },
};

/** As `nft list` begins the statement (objref_stmt_print). */
function words(object: NamedObject): string {
  if (object === "secmark") return "meta secmark set";
  return object.startsWith("ct ") ? `${object} set` : `${object} name`;
}

/** Translates the destination, for the connection that the packet begins. */
export interface Nat {
  readonly kind: "nat";
  readonly family: NftFamily;
  readonly address: Register;
  /** Where the port is; absent: it stays. */
  readonly port?: Register;
}

/** NFT_NAT_DNAT. */
const DNAT = 1;
const NAT_DATA = { type: 1, family: 2, addressMin: 3, addressMax: 4, portMin: 5, portMax: 6, flags: 7 } as const;
/** NF_NAT_RANGE_PROTO_SPECIFIED, which the kernel adds by itself where there is a port. */
const PORT_GIVEN = 0x2;
/** NF_NAT_RANGE_MAP_IPS, likewise. */
const ADDRESS_GIVEN = 0x1;

export const nat: ExpressionKind<Nat> = {
  name: "nat",
  encode({ family, address, port }, writer) {
    writer
      .u32(NAT_DATA.type, DNAT)
      .u32(NAT_DATA.family, FAMILY_NUMBERS[family])
      .u32(NAT_DATA.addressMin, registerNumber(address));
    if (port !== undefined) writer.u32(NAT_DATA.portMin, registerNumber(port)).u32(NAT_DATA.flags, PORT_GIVEN);
  },
  decode(data) {
    const [address, port, flags = 0] = [
      data.u32(NAT_DATA.addressMin),
      data.u32(NAT_DATA.portMin),
      data.u32(NAT_DATA.flags),
    ];
    const family = data.u32(NAT_DATA.family) === FAMILY_NUMBERS.ip ? "ip" : "ip6";
    if (data.u32(NAT_DATA.type) !== DNAT || address === undefined || (flags & ~(PORT_GIVEN | ADDRESS_GIVEN)) !== 0) {
      return undefined;
    }
    const ranged =
      (data.u32(NAT_DATA.addressMax) ?? address) !== address || (data.u32(NAT_DATA.portMax) ?? port) !== port;
    if (ranged) return undefined;
    return { kind: "nat", family, address: registerOf(address), ...(port !== undefined && { port: registerOf(port) }) };
  },
  print: ({ family, address, port }, printer) => printer.translate(family, address, port),
};

/** Translates the source to the address of the interface that the packet leaves by. */
export interface Masq {
  readonly kind: "masq";
  readonly fullyRandom: boolean;
}

const MASQ_DATA = { flags: 1 } as const;
/** NF_NAT_RANGE_PROTO_RANDOM_FULLY. */
const FULLY_RANDOM = 0x10;

export const masq: ExpressionKind<Masq> = {
  name: "masq",
  encode({ fullyRandom }, writer) {
    if (fullyRandom) writer.u32(MASQ_DATA.flags, FULLY_RANDOM);
  },
  decode(data) {
    const flags = data.u32(MASQ_DATA.flags) ?? 0;
    return (flags & ~FULLY_RANDOM) === 0 ? { kind: "masq", fullyRandom: flags === FULLY_RANDOM } : undefined;
  },
  print: ({ fullyRandom }, printer) => printer.say(fullyRandom ? "masquerade fully-random" : "masquerade"),
};

/** Ends the packet with an ICMP error or, where asked for, a TCP reset. */
export interface Reject {
  readonly kind: "reject";
  readonly with: "port-unreachable" | "tcp-reset";
  /** ICMP's code of "port unreachable": 3 in IPv4, 4 in IPv6. */
  readonly code: number;
}

/** enum nft_reject_types: NFT_REJECT_ICMP_UNREACH and NFT_REJECT_TCP_RST. */
const TYPES = { "port-unreachable": 0, "tcp-reset": 1 } as const;
const REJECT_DATA = { type: 1, code: 2 } as const;

/** ICMP_PORT_UNREACH and ICMPV6_PORT_UNREACH. */
export const PORT_UNREACHABLE = { ip: 3, ip6: 4 } as const;

export const reject: ExpressionKind<Reject> = {
  name: "reject",
  encode(expression, writer) {
    writer.u32(REJECT_DATA.type, TYPES[expression.with]);
    if (expression.with === "port-unreachable") writer.u8(REJECT_DATA.code, expression.code);
  },
  decode(data, family) {
    const type = data.u32(REJECT_DATA.type);
    if (type === TYPES["tcp-reset"]) return { kind: "reject", with: "tcp-reset", code: 0 };
    const code = data.u8(REJECT_DATA.code) ?? 0;
    const known = type === TYPES["port-unreachable"] && code === PORT_UNREACHABLE[family];
    return known ? { kind: "reject", with: "port-unreachable", code } : undefined;
  },
  print: (expression, printer) => printer.say(expression.with === "tcp-reset" ? "reject with tcp reset" : "reject"),
};

/**
 * Puts the packet's connection into a flowtable: its later packets go from device to device and meet no rule. The rule
 * ends where the connection cannot be put there (not established, another protocol, already in a flowtable).
 */
export interface FlowOffload {
  readonly kind: "flow-offload";
  readonly flowtable: string;
}

/** NFTA_FLOW_TABLE_NAME. */
const FLOW_OFFLOAD_DATA = { flowtable: 1 } as const;

export const flowOffload: ExpressionKind<FlowOffload> = {
  name: "flow_offload",
  encode: ({ flowtable }, writer) => void writer.text(FLOW_OFFLOAD_DATA.flowtable, flowtable),
  decode(data) {
    const flowtable = data.text(FLOW_OFFLOAD_DATA.flowtable);
    return flowtable === undefined ? undefined : { kind: "flow-offload", flowtable };
  },
  print: ({ flowtable }, printer) => printer.say(`flow add @${flowtable}`),
};

/** A part of a rule that has no type here. It may do anything, a verdict included, and it can't be written. */
export interface Unknown {
  readonly kind: "unknown";
  /** As the listing has it; of what was read by netlink, the kernel's name. */
  readonly text: string;
  /**
   * none: it lets the packet on, and changes nothing that rules ask for. test: it says yes or no, and nothing else.
   * Absent: what the text says.
   */
  readonly effect?: "none" | "test";
  /** Where it leaves an unknown value. */
  readonly to?: Register;
}

/** Bytes of what may be left there: no register is longer. */
const LONGEST = 16;

export const unknown: ExpressionKind<Unknown> = {
  // No kind of the kernel's has this name.
  name: "",
  encode({ text }) {
    throw new RangeError(`"${text}" is not known here and can't be written`);
  },
  decode: () => undefined,
  print: ({ text, to }, printer) => (to === undefined ? printer.say(text) : printer.load(to, LONGEST, { text })),
};
