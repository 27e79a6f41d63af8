import type { CIDRSides } from "./cidr/sides.ts";

/** On which side of the excluded CIDRs the endpoints of a service lie. */
export interface Survey {
  /** Distinct addresses outside and inside. */
  readonly own: number;
  readonly excluded: number;
  /** Distinct addresses that decide nothing; in neither of the two. */
  readonly neutral: number;
  /** Excluded CIDRs with at least one of the addresses, sorted. */
  readonly cidrs: readonly string[];
}

export function survey(
  sides: CIDRSides,
  addresses: Iterable<string>,
  neutralAddresses: ReadonlySet<string> = NO_ADDRESSES,
): Survey {
  const seen = new Set<string>();
  const cidrs = new Set<string>();
  let excluded = 0;
  let neutral = 0;
  for (const address of addresses) {
    if (seen.has(address)) continue;
    seen.add(address);
    if (neutralAddresses.size > 0 && neutralAddresses.has(address)) {
      neutral++;
      continue;
    }
    const cidr = sides.excluding(address);
    if (cidr === undefined) continue;
    excluded++;
    cidrs.add(cidr);
  }
  const own = seen.size - excluded - neutral;
  return { own, excluded, neutral, cidrs: cidrs.size === 0 ? NONE : [...cidrs].sort() };
}

const NONE: readonly string[] = [];
const NO_ADDRESSES: ReadonlySet<string> = new Set();
