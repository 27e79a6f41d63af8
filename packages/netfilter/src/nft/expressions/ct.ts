import type { DataType } from "../types.ts";
import type { ExpressionKind } from "./kind.ts";
import { type Register, registerNumber, registerOf } from "./registers.ts";

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
const KEYS = {
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
export type CtKey = keyof typeof KEYS;

/** enum ip_conntrack_dir, a number of one byte. */
export const CT_DIRECTIONS = { original: 0, reply: 1 } as const;
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
  Record<Exclude<CtKey, keyof typeof PLAIN>, { readonly type: DataType; readonly length: number }>
>;

/** What the others load, as it is printed. */
const PLAIN = {
  state: { length: 4, value: { text: "ct state", bits: "state" } },
  status: { length: 4, value: { text: "ct status", bits: "status" } },
  direction: { length: 1, value: { text: "ct direction", words: CT_DIRECTIONS } },
  mark: { length: 4, value: { text: "ct mark", type: "mark" } },
} as const;

const DATA = { to: 1, key: 2, direction: 3, from: 4 } as const;

export const ct: ExpressionKind<Ct> = {
  name: "ct",
  encode(expression, writer) {
    const key = KEYS[expression.key];
    if ("from" in expression) {
      writer.u32(DATA.key, key).u32(DATA.from, registerNumber(expression.from));
      return;
    }
    const { to, direction } = expression;
    writer.u32(DATA.to, registerNumber(to)).u32(DATA.key, key);
    if (direction !== undefined) writer.u8(DATA.direction, DIRECTIONS.indexOf(direction));
  },
  decode(data) {
    // The keys of a constant are its own.
    const key = (Object.keys(KEYS) as CtKey[]).find((name) => KEYS[name] === data.u32(DATA.key));
    const [to, from] = [data.u32(DATA.to), data.u32(DATA.from)];
    if (key === "mark" && from !== undefined) return { kind: "ct", key, from: registerOf(from) };
    const direction = DIRECTIONS[data.u8(DATA.direction) ?? -1];
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
