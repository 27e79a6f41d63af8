import type { ExpressionKind } from "./kind.ts";
import { type Register, registerNumber, registerOf } from "./registers.ts";

/** Loads what connection tracking knows of the packet, 32 bits in the machine's byte order. */
export interface Ct {
  readonly kind: "ct";
  readonly key: CtKey;
  readonly to: Register;
}

/** enum nft_ct_keys. */
const KEYS = { state: 0, status: 2 } as const;
type CtKey = keyof typeof KEYS;

const DATA = { to: 1, key: 2, direction: 3 } as const;

export const ct: ExpressionKind<Ct> = {
  name: "ct",
  encode: ({ key, to }, writer) => void writer.u32(DATA.to, registerNumber(to)).u32(DATA.key, KEYS[key]),
  decode(data) {
    // The keys of a constant are its own.
    const key = (Object.keys(KEYS) as CtKey[]).find((name) => KEYS[name] === data.u32(DATA.key));
    const to = data.u32(DATA.to);
    return key === undefined || to === undefined ? undefined : { kind: "ct", key, to: registerOf(to) };
  },
  print: ({ key, to }, printer) => printer.load(to, 4, { text: `ct ${key}`, bits: key }),
};
