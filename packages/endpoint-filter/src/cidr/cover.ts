import type { CIDR } from "./cidr.ts";

export function overlaps(a: CIDR, b: CIDR): boolean {
  return a.family === b.family && a.first <= b.last && b.first <= a.last;
}

/** Whether `cidrs` together contain every address of `target`. */
export function covers(cidrs: readonly CIDR[], target: CIDR): boolean {
  const relevant = cidrs.filter((cidr) => overlaps(cidr, target)).sort((a, b) => compare(a.first, b.first));
  let next = target.first;
  for (const { first, last } of relevant) {
    if (first > next) return false;
    if (last >= next) next = last + 1n;
  }
  return next > target.last;
}

function compare(a: bigint, b: bigint): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
