import { checkCIDR } from "@fairlead/endpoint-filter";

/** A CIDR of an object. */
export interface Entry {
  /** Canonical, or the text where it is not a CIDR. */
  readonly cidr: string;
  /** Why it cannot count. */
  readonly problem?: string;
}

/** Longer texts are no CIDR; they need not be kept whole. */
const LONGEST = 64;

export function entryOf(text: string): Entry {
  const found = checkCIDR(text);
  if ("cidr" in found) return found;
  return { cidr: text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text, problem: found.problem };
}
