import type { ExpressionKind } from "./kind.ts";
import { type Register, registerNumber, registerOf } from "./registers.ts";

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
const DATA = { register: 1, base: 2, offset: 3, length: 4 } as const;

export const payload: ExpressionKind<Payload> = {
  name: "payload",
  encode({ base, offset, length, to }, writer) {
    writer.u32(DATA.register, registerNumber(to)).u32(DATA.base, BASES[base]);
    writer.u32(DATA.offset, offset).u32(DATA.length, length);
  },
  decode(data) {
    const to = data.u32(DATA.register);
    const base = data.u32(DATA.base) === BASES.network ? "network" : "transport";
    if (to === undefined || (base === "transport" && data.u32(DATA.base) !== BASES.transport)) return undefined;
    const [offset = 0, length = 0] = [data.u32(DATA.offset), data.u32(DATA.length)];
    return { kind: "payload", base, offset, length, to: registerOf(to) };
  },
  print({ base, offset, length, to }, printer) {
    const fields = base === "network" ? ADDRESSES[printer.family] : TRANSPORT_FIELDS;
    const field = fields.find((one) => one.offset === offset && one.length >= length);
    printer.load(to, length, field ?? { text: `@${base === "network" ? "nh" : "th"},${8 * offset},${8 * length}` });
  },
};

/** Fields by where they are. */
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
