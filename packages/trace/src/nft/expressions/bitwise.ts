import { isKnown } from "../registers.ts";
import type { Evaluate } from "./kind.ts";

export const bitwise: Evaluate<"bitwise"> = ({ from, to, mask, xor }, { registers }) => {
  const value = registers.read(from, mask.length / 2);
  registers.load(to, [...value].map((digit, at) => maskedDigit(digit, mask[at] ?? "0", xor[at] ?? "0")).join(""));
  return undefined;
};

/** What is masked away is known whatever it was. */
function maskedDigit(digit: string, mask: string, xor: string): string {
  if (mask === "0") return xor;
  if (!isKnown(digit)) return digit;
  return ((Number.parseInt(digit, 16) & Number.parseInt(mask, 16)) ^ Number.parseInt(xor, 16)).toString(16);
}
