import { Problem } from "./problem.ts";

/** Unsigned number in the forms of strtoul: 16, 0x10, 020. */
export function parseUnsigned(text: string, max: number, what: string): number {
  const value = unsigned(text);
  if (value === undefined || value > max) throw new Problem(`${what} "${text}" is not a number from 0 to ${max}`);
  return value;
}

function unsigned(text: string): number | undefined {
  if (/^0x[0-9a-f]+$/i.test(text)) return Number.parseInt(text.slice(2), 16);
  if (/^0[0-7]+$/.test(text)) return Number.parseInt(text, 8);
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

/** `value` or `value/mask`. */
export function parseMark(text: string): { value: number; mask: number | undefined } {
  const slash = text.indexOf("/");
  if (slash < 0) return { value: parseUnsigned(text, 0xffffffff, "mark"), mask: undefined };
  return {
    value: parseUnsigned(text.slice(0, slash), 0xffffffff, "mark"),
    mask: parseUnsigned(text.slice(slash + 1), 0xffffffff, "mask"),
  };
}

/** xt_statistic keeps a probability as a count of 2^31. */
const PROBABILITY_UNIT = 0x80000000;

/**
 * A probability in the form in which iptables-save prints it: rounded to the kernel's unit of 2^-31, 11 digits.
 *
 * @param probability 0 to 1
 * @throws RangeError outside of it
 */
export function statisticProbability(probability: number): string {
  if (!(probability >= 0 && probability <= 1)) throw new RangeError(`probability ${probability}: must be from 0 to 1`);
  return (Math.round(probability * PROBABILITY_UNIT) / PROBABILITY_UNIT).toFixed(11);
}

/**
 * The probability of the first of some choices that has `weight` of their `total` as kube-proxy's rule has it after the
 * kernel's rounding: their quotient with 10 digits, then `statisticProbability`.
 */
export function shareProbability(weight: number, total: number): string {
  return statisticProbability(Number((weight / total).toFixed(10)));
}
