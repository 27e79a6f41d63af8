import { numberRangeCIDRs } from "@fairlead/base";
import type { CIDR } from "./cidr.ts";
import { toSegments } from "./segments.ts";

/**
 * The addresses whose most specific CIDR is one of the `wanted` ones, as the fewest CIDRs, sorted.
 *
 * @param cidrs of one family
 */
export function regionsOf(cidrs: readonly CIDR[], wanted: (cidr: CIDR) => boolean): readonly string[] {
  const ranges: { first: bigint; last: bigint }[] = [];
  for (const { first, last, cidr } of toSegments(cidrs)) {
    if (!wanted(cidr)) continue;
    const before = ranges.at(-1);
    if (before !== undefined && before.last + 1n === first) before.last = last;
    else ranges.push({ first, last });
  }
  const family = cidrs[0]?.family;
  return family === undefined ? [] : ranges.flatMap(({ first, last }) => numberRangeCIDRs(family, first, last));
}
