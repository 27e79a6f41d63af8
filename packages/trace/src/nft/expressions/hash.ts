import { bytesOf } from "@fairlead/netfilter/nft";
import { jhash } from "../jhash.ts";
import { isKnown } from "../registers.ts";
import type { Evaluate } from "./kind.ts";

export const hash: Evaluate<"hash"> = ({ from, length, modulus, seed, to }, { registers }) => {
  const hashed = registers.read(from, length);
  if (!isKnown(hashed)) return { kind: "draw", modulus, to };
  registers.loadNumber(to, scaled(jhash(bytesOf(hashed), seed), modulus));
  return undefined;
};

/** 32 bits to a number from 0 to before `modulus` (reciprocal_scale). */
function scaled(value: number, modulus: number): number {
  return Number((BigInt(value) * BigInt(modulus)) >> 32n);
}
