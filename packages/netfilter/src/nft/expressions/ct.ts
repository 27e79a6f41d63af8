import type { DataType } from "../types.ts";
import type { ExpressionKind } from "./kind.ts";
import { type Register, registerNumber, registerOf } from "./registers.ts";

/** Loads what connection tracking knows of the packet. */
export interface Ct {
  readonly kind: "ct";
  readonly key: CtKey;
  /** Whose address or port: as the connection's first packet had it, or as the answer to it has. */
  readonly direction?: CtDirection;
  readonly to: Register;
}

/** enum nft_ct_keys. State and status have 32 bits in the machine's byte order. */
const KEYS = {
  state: 0,
  status: 2,
  "proto-src": 11,
  "proto-dst": 12,
  "ip saddr": 19,
  "ip daddr": 20,
  "ip6 saddr": 21,
  "ip6 daddr": 22,
} as const;
export type CtKey = keyof typeof KEYS;

/** enum ip_conntrack_dir, a number of one byte. */
const DIRECTIONS = ["original", "reply"] as const;
type CtDirection = (typeof DIRECTIONS)[number];

/** What the keys that have a direction load. */
export const CT_TUPLE = {
  "proto-src": { type: "inet_service", length: 2 },
  "proto-dst": { type: "inet_service", length: 2 },
  "ip saddr": { type: "ipv4_addr", length: 4 },
  "ip daddr": { type: "ipv4_addr", length: 4 },
  "ip6 saddr": { type: "ipv6_addr", length: 16 },
  "ip6 daddr": { type: "ipv6_addr", length: 16 },
} as const satisfies Readonly<
  Record<Exclude<CtKey, "state" | "status">, { readonly type: DataType; readonly length: number }>
>;

const DATA = { to: 1, key: 2, direction: 3 } as const;

export const ct: ExpressionKind<Ct> = {
  name: "ct",
  encode({ key, direction, to }, writer) {
    writer.u32(DATA.to, registerNumber(to)).u32(DATA.key, KEYS[key]);
    if (direction !== undefined) writer.u8(DATA.direction, DIRECTIONS.indexOf(direction));
  },
  decode(data) {
    // The keys of a constant are its own.
    const key = (Object.keys(KEYS) as CtKey[]).find((name) => KEYS[name] === data.u32(DATA.key));
    const to = data.u32(DATA.to);
    const direction = DIRECTIONS[data.u8(DATA.direction) ?? -1];
    if (key === undefined || to === undefined || hasDirection(key) !== (direction !== undefined)) return undefined;
    return { kind: "ct", key, ...(direction !== undefined && { direction }), to: registerOf(to) };
  },
  print({ key, direction, to }, printer) {
    if (!hasDirection(key)) printer.load(to, 4, { text: `ct ${key}`, bits: key });
    else printer.load(to, CT_TUPLE[key].length, { text: `ct ${direction} ${key}`, type: CT_TUPLE[key].type });
  },
};

function hasDirection(key: CtKey): key is keyof typeof CT_TUPLE {
  return key !== "state" && key !== "status";
}
