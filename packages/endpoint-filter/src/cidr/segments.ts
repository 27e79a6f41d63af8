import type { CIDR } from "./cidr.ts";

/** A run of addresses that all have the same most specific CIDR. */
export interface Segment {
  readonly first: bigint;
  readonly last: bigint;
  readonly cidr: CIDR;
}

/**
 * Cuts CIDRs of one family into sorted, disjoint segments: at most two for each. CIDRs are nested or disjoint, never
 * anything between, so one pass with a stack of the open ones is enough.
 */
export function toSegments(cidrs: readonly CIDR[]): Segment[] {
  const sorted = [...cidrs].sort((a, b) => compare(a.first, b.first) || a.length - b.length);
  const segments: Segment[] = [];
  const open: CIDR[] = [];
  let next = 0n;
  const emit = (cidr: CIDR, last: bigint) => {
    if (next <= last) segments.push({ first: next, last, cidr });
    next = last + 1n;
  };
  const closeBefore = (limit: bigint | undefined) => {
    for (let top = open.at(-1); top !== undefined && (limit === undefined || top.last < limit); top = open.at(-1)) {
      emit(top, top.last);
      open.pop();
    }
  };
  for (const cidr of sorted) {
    closeBefore(cidr.first);
    const around = open.at(-1);
    if (around?.text === cidr.text) continue;
    if (around !== undefined) emit(around, cidr.first - 1n);
    next = cidr.first;
    open.push(cidr);
  }
  closeBefore(undefined);
  return segments;
}

export function compare(a: bigint, b: bigint): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
