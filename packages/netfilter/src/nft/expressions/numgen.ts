import type { ExpressionKind } from "./kind.ts";
import { type Register, registerNumber, registerOf } from "./registers.ts";

/** Draws a number from 0 to before `modulus`, in the machine's byte order. */
export interface Numgen {
  readonly kind: "numgen";
  readonly modulus: number;
  readonly to: Register;
}

const DATA = { to: 1, modulus: 2, type: 3, offset: 4 } as const;
/** NFT_NG_RANDOM. */
const RANDOM = 1;

export const numgen: ExpressionKind<Numgen> = {
  name: "numgen",
  encode({ modulus, to }, writer) {
    writer.u32(DATA.to, registerNumber(to)).u32(DATA.modulus, modulus).u32(DATA.type, RANDOM).u32(DATA.offset, 0);
  },
  decode(data) {
    const [to, modulus] = [data.u32(DATA.to), data.u32(DATA.modulus)];
    if (to === undefined || modulus === undefined || data.u32(DATA.type) !== RANDOM) return undefined;
    return (data.u32(DATA.offset) ?? 0) === 0 ? { kind: "numgen", modulus, to: registerOf(to) } : undefined;
  },
  print: ({ modulus, to }, printer) => printer.load(to, 4, { text: `numgen random mod ${modulus}`, type: "integer" }),
};
