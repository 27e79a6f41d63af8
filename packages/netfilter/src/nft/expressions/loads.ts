/** Expressions that load something into a register: of the packet, its connection, its route, or a number. */

import { DATA_TYPES, type DataType } from "../types.ts";
import { type ExpressionKind, type Register, registerNumber, registerOf } from "./kind.ts";

/** Loads bytes of the packet. */
export interface Payload {
  readonly kind: "payload";
  readonly base: "network" | "transport";
  /** Bytes from the beginning of that header. */
  readonly offset: number;
  readonly length: number;
  readonly to: Register;
}

/** enum nft_payload_bases. */
const BASES = { network: 1, transport: 2 } as const;
const PAYLOAD_DATA = { register: 1, base: 2, offset: 3, length: 4 } as const;

const ADDRESSES = {
  ip: [
    { text: "ip saddr", type: "ipv4_addr", offset: 12, length: 4 },
    { text: "ip daddr", type: "ipv4_addr", offset: 16, length: 4 },
  ],
  ip6: [
    { text: "ip6 saddr", type: "ipv6_addr", offset: 8, length: 16 },
    { text: "ip6 daddr", type: "ipv6_addr", offset: 24, length: 16 },
  ],
} as const;
const TRANSPORT_FIELDS = [
  { text: "th sport", type: "inet_service", offset: 0, length: 2 },
  { text: "th dport", type: "inet_service", offset: 2, length: 2 },
  { text: "tcp flags", type: "tcp_flag", bits: "flags", offset: 13, length: 1 },
] as const;

export const payload: ExpressionKind<Payload> = {
  name: "payload",
  encode({ base, offset, length, to }, writer) {
    writer.u32(PAYLOAD_DATA.register, registerNumber(to)).u32(PAYLOAD_DATA.base, BASES[base]);
    writer.u32(PAYLOAD_DATA.offset, offset).u32(PAYLOAD_DATA.length, length);
  },
  decode(data) {
    const to = data.u32(PAYLOAD_DATA.register);
    const base = data.u32(PAYLOAD_DATA.base) === BASES.network ? "network" : "transport";
    if (to === undefined || (base === "transport" && data.u32(PAYLOAD_DATA.base) !== BASES.transport)) return undefined;
    const [offset = 0, length = 0] = [data.u32(PAYLOAD_DATA.offset), data.u32(PAYLOAD_DATA.length)];
    return { kind: "payload", base, offset, length, to: registerOf(to) };
  },
  print({ base, offset, length, to }, printer) {
    const fields = base === "network" ? ADDRESSES[printer.family] : TRANSPORT_FIELDS;
    const field = fields.find((one) => one.offset === offset && one.length >= length);
    printer.load(to, length, field ?? { text: `@${base === "network" ? "nh" : "th"},${8 * offset},${8 * length}` });
  },
};

/** Loads what the kernel knows of the packet alongside its bytes, or sets the mark, or whether it is traced. */
export type Meta =
  | { readonly kind: "meta"; readonly key: MetaKey; readonly to: Register }
  | { readonly kind: "meta"; readonly key: keyof typeof SETTABLE; readonly from: Register };

/** enum nft_meta_keys, with nft's names. */
const META_KEYS = { mark: 3, iifname: 6, oifname: 7, l4proto: 16, random: 24 } as const;
type MetaKey = keyof typeof META_KEYS;
const SETTABLE = { mark: 3, nftrace: 12 } as const;

const META_DATA = { to: 1, key: 2, from: 3 } as const;
const FACTS = {
  mark: { text: "meta mark", type: "mark", length: 4 },
  iifname: { text: "iifname", type: "ifname", length: 16 },
  oifname: { text: "oifname", type: "ifname", length: 16 },
  l4proto: { text: "meta l4proto", type: "inet_proto", length: 1 },
  random: { text: "meta random", type: "random", length: 4 },
} as const;

export const meta: ExpressionKind<Meta> = {
  name: "meta",
  encode(expression, writer) {
    if ("from" in expression)
      writer.u32(META_DATA.key, SETTABLE[expression.key]).u32(META_DATA.from, registerNumber(expression.from));
    else writer.u32(META_DATA.key, META_KEYS[expression.key]).u32(META_DATA.to, registerNumber(expression.to));
  },
  decode(data) {
    const [number, to, from] = [data.u32(META_DATA.key), data.u32(META_DATA.to), data.u32(META_DATA.from)];
    const [key, set] = [keyIn(META_KEYS, number), keyIn(SETTABLE, number)];
    if (key !== undefined && to !== undefined) return { kind: "meta", key, to: registerOf(to) };
    return set === undefined || from === undefined ? undefined : { kind: "meta", key: set, from: registerOf(from) };
  },
  print(expression, printer) {
    if (expression.key === "nftrace") {
      printer.say(`meta nftrace set ${Number(printer.value(expression.from, 1).text)}`);
      return;
    }
    const { text, type, length } = FACTS[expression.key];
    if ("from" in expression) {
      const { constant, text: held } = printer.value(expression.from, length);
      printer.say(`${text} set ${constant === undefined ? held : DATA_TYPES[type].text(constant)}`);
    } else printer.load(expression.to, length, { text, type });
  },
};

/** The keys of a constant are its own. */
function keyIn<Key extends string>(keys: Readonly<Record<Key, number>>, number: number | undefined): Key | undefined {
  return (Object.keys(keys) as Key[]).find((name) => keys[name] === number);
}

/** Loads what connection tracking knows of the packet, or sets the connection's mark. */
export type Ct = LoadedCt | { readonly kind: "ct"; readonly key: "mark"; readonly from: Register };

interface LoadedCt {
  readonly kind: "ct";
  readonly key: CtKey;
  /** Whose address or port: as the connection's first packet had it, or as the answer to it has. */
  readonly direction?: CtDirection;
  readonly to: Register;
}

/** enum nft_ct_keys. State, status and mark have 32 bits in the machine's byte order, the direction a byte. */
const CT_KEYS = {
  state: 0,
  direction: 1,
  status: 2,
  mark: 3,
  "proto-src": 11,
  "proto-dst": 12,
  "ip saddr": 19,
  "ip daddr": 20,
  "ip6 saddr": 21,
  "ip6 daddr": 22,
} as const;
type CtKey = keyof typeof CT_KEYS;

/** enum ip_conntrack_dir, a number of one byte. */
export const CT_DIRECTIONS = { original: 0, reply: 1 } as const;
const DIRECTIONS = ["original", "reply"] as const;
type CtDirection = (typeof DIRECTIONS)[number];

export const CT_TUPLE = {
  "proto-src": { type: "inet_service", length: 2 },
  "proto-dst": { type: "inet_service", length: 2 },
  "ip saddr": { type: "ipv4_addr", length: 4 },
  "ip daddr": { type: "ipv4_addr", length: 4 },
  "ip6 saddr": { type: "ipv6_addr", length: 16 },
  "ip6 daddr": { type: "ipv6_addr", length: 16 },
} as const satisfies Readonly<
  Record<Exclude<CtKey, keyof typeof PLAIN>, { readonly type: DataType; readonly length: number }>
>;

const PLAIN = {
  state: { length: 4, value: { text: "ct state", bits: "state" } },
  status: { length: 4, value: { text: "ct status", bits: "status" } },
  direction: { length: 1, value: { text: "ct direction", words: CT_DIRECTIONS } },
  mark: { length: 4, value: { text: "ct mark", type: "mark" } },
} as const;

const CT_DATA = { to: 1, key: 2, direction: 3, from: 4 } as const;

export const ct: ExpressionKind<Ct> = {
  name: "ct",
  encode(expression, writer) {
    const key = CT_KEYS[expression.key];
    if ("from" in expression) {
      writer.u32(CT_DATA.key, key).u32(CT_DATA.from, registerNumber(expression.from));
      return;
    }
    const { to, direction } = expression;
    writer.u32(CT_DATA.to, registerNumber(to)).u32(CT_DATA.key, key);
    if (direction !== undefined) writer.u8(CT_DATA.direction, DIRECTIONS.indexOf(direction));
  },
  decode(data) {
    // The keys of a constant are its own.
    const key = (Object.keys(CT_KEYS) as CtKey[]).find((name) => CT_KEYS[name] === data.u32(CT_DATA.key));
    const [to, from] = [data.u32(CT_DATA.to), data.u32(CT_DATA.from)];
    if (key === "mark" && from !== undefined) return { kind: "ct", key, from: registerOf(from) };
    const direction = DIRECTIONS[data.u8(CT_DATA.direction) ?? -1];
    if (key === undefined || to === undefined || hasDirection(key) !== (direction !== undefined)) return undefined;
    return { kind: "ct", key, ...(direction !== undefined && { direction }), to: registerOf(to) };
  },
  print(expression, printer) {
    if ("from" in expression) {
      const { constant, text } = printer.value(expression.from, 4);
      printer.say(`ct mark set ${constant === undefined ? text : `0x${constant}`}`);
      return;
    }
    const { key, direction, to } = expression;
    if (!hasDirection(key)) printer.load(to, PLAIN[key].length, PLAIN[key].value);
    else printer.load(to, CT_TUPLE[key].length, { text: `ct ${direction} ${key}`, type: CT_TUPLE[key].type });
  },
};

function hasDirection(key: CtKey): key is keyof typeof CT_TUPLE {
  return !(key in PLAIN);
}

/** Asks the routing tables what kind of address one is: RTN_LOCAL and kin, 32 bits in the machine's byte order. */
export interface Fib {
  readonly kind: "fib";
  readonly of: "saddr" | "daddr";
  readonly to: Register;
}

const FIB_DATA = { to: 1, result: 2, flags: 3 } as const;
/** NFT_FIB_RESULT_ADDRTYPE. */
const ADDRESS_TYPE = 3;
/** NFTA_FIB_F_SADDR and NFTA_FIB_F_DADDR. */
const OF = { saddr: 1, daddr: 2 } as const;

/** RTN_* of linux/rtnetlink.h, as nft names them. */
export const ADDRESS_TYPES: Readonly<Record<string, number>> = { unicast: 1, local: 2, broadcast: 3, multicast: 5 };

export const fib: ExpressionKind<Fib> = {
  name: "fib",
  encode({ of, to }, writer) {
    writer.u32(FIB_DATA.to, registerNumber(to)).u32(FIB_DATA.result, ADDRESS_TYPE).u32(FIB_DATA.flags, OF[of]);
  },
  decode(data) {
    const to = data.u32(FIB_DATA.to);
    const flags = data.u32(FIB_DATA.flags);
    if (to === undefined || data.u32(FIB_DATA.result) !== ADDRESS_TYPE) return undefined;
    if (flags !== OF.saddr && flags !== OF.daddr) return undefined;
    return { kind: "fib", of: flags === OF.saddr ? "saddr" : "daddr", to: registerOf(to) };
  },
  print: ({ of, to }, printer) => printer.load(to, 4, { text: `fib ${of} type`, words: ADDRESS_TYPES }),
};

/** Hashes registers to a number from 0 to before `modulus`, in the machine's byte order (jhash). */
export interface Hash {
  readonly kind: "hash";
  readonly from: Register;
  /** Bytes. */
  readonly length: number;
  readonly modulus: number;
  readonly seed: number;
  readonly to: Register;
}

const HASH_DATA = { from: 1, to: 2, length: 3, modulus: 4, seed: 5, offset: 6, type: 7 } as const;
/** NFT_HASH_JENKINS. */
const JENKINS = 0;

export const hash: ExpressionKind<Hash> = {
  name: "hash",
  encode({ from, length, modulus, seed, to }, writer) {
    writer
      .u32(HASH_DATA.from, registerNumber(from))
      .u32(HASH_DATA.to, registerNumber(to))
      .u32(HASH_DATA.length, length);
    writer.u32(HASH_DATA.modulus, modulus).u32(HASH_DATA.seed, seed).u32(HASH_DATA.type, JENKINS);
  },
  decode(data) {
    const [from, to, modulus] = [data.u32(HASH_DATA.from), data.u32(HASH_DATA.to), data.u32(HASH_DATA.modulus)];
    if (from === undefined || to === undefined || modulus === undefined) return undefined;
    if ((data.u32(HASH_DATA.type) ?? JENKINS) !== JENKINS || (data.u32(HASH_DATA.offset) ?? 0) !== 0) return undefined;
    const [length = 0, seed = 0] = [data.u32(HASH_DATA.length), data.u32(HASH_DATA.seed)];
    return { kind: "hash", from: registerOf(from), length, modulus, seed, to: registerOf(to) };
  },
  print({ from, length, modulus, seed, to }, printer) {
    const text = `jhash ${printer.value(from, length).text} mod ${modulus} seed 0x${seed.toString(16)}`;
    printer.load(to, 4, { text, type: "integer" });
  },
};

/** Draws a number from 0 to before `modulus`, in the machine's byte order. */
export interface Numgen {
  readonly kind: "numgen";
  readonly modulus: number;
  readonly to: Register;
}

const NUMGEN_DATA = { to: 1, modulus: 2, type: 3, offset: 4 } as const;
/** NFT_NG_RANDOM. */
const RANDOM = 1;

export const numgen: ExpressionKind<Numgen> = {
  name: "numgen",
  encode({ modulus, to }, writer) {
    writer
      .u32(NUMGEN_DATA.to, registerNumber(to))
      .u32(NUMGEN_DATA.modulus, modulus)
      .u32(NUMGEN_DATA.type, RANDOM)
      .u32(NUMGEN_DATA.offset, 0);
  },
  decode(data) {
    const [to, modulus] = [data.u32(NUMGEN_DATA.to), data.u32(NUMGEN_DATA.modulus)];
    if (to === undefined || modulus === undefined || data.u32(NUMGEN_DATA.type) !== RANDOM) return undefined;
    return (data.u32(NUMGEN_DATA.offset) ?? 0) === 0 ? { kind: "numgen", modulus, to: registerOf(to) } : undefined;
  },
  print: ({ modulus, to }, printer) => printer.load(to, 4, { text: `numgen random mod ${modulus}`, type: "integer" }),
};
