import type { ExpressionKind } from "./kind.ts";
import { type Register, registerNumber, registerOf } from "./registers.ts";

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

const DATA = { from: 1, to: 2, length: 3, modulus: 4, seed: 5, offset: 6, type: 7 } as const;
/** NFT_HASH_JENKINS. */
const JENKINS = 0;

export const hash: ExpressionKind<Hash> = {
  name: "hash",
  encode({ from, length, modulus, seed, to }, writer) {
    writer.u32(DATA.from, registerNumber(from)).u32(DATA.to, registerNumber(to)).u32(DATA.length, length);
    writer.u32(DATA.modulus, modulus).u32(DATA.seed, seed).u32(DATA.type, JENKINS);
  },
  decode(data) {
    const [from, to, modulus] = [data.u32(DATA.from), data.u32(DATA.to), data.u32(DATA.modulus)];
    if (from === undefined || to === undefined || modulus === undefined) return undefined;
    if ((data.u32(DATA.type) ?? JENKINS) !== JENKINS || (data.u32(DATA.offset) ?? 0) !== 0) return undefined;
    const [length = 0, seed = 0] = [data.u32(DATA.length), data.u32(DATA.seed)];
    return { kind: "hash", from: registerOf(from), length, modulus, seed, to: registerOf(to) };
  },
  print({ from, length, modulus, seed, to }, printer) {
    const text = `jhash ${printer.value(from, length).text} mod ${modulus} seed 0x${seed.toString(16)}`;
    printer.load(to, 4, { text, type: "integer" });
  },
};
