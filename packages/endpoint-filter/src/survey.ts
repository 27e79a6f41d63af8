import type { FilterEndpoint } from "@fairlead/core";
import type { CIDRSides } from "./cidr/sides.ts";
import { isNeutral, type NeutralAddresses } from "./neutral.ts";

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

export function survey(sides: CIDRSides, endpoints: Iterable<FilterEndpoint>, neutral?: NeutralAddresses): Survey {
  const deciding = new Set<string>();
  const undecided = new Set<string>();
  for (const endpoint of endpoints) (isNeutral(neutral, endpoint) ? undecided : deciding).add(endpoint.address);
  // Slices may differ about where an address is; the order in which they come does not matter.
  for (const address of undecided) deciding.delete(address);
  const cidrs = new Set<string>();
  let excluded = 0;
  for (const address of deciding) {
    const cidr = sides.excluding(address);
    if (cidr === undefined) continue;
    excluded++;
    cidrs.add(cidr);
  }
  return {
    own: deciding.size - excluded,
    excluded,
    neutral: undecided.size,
    cidrs: cidrs.size === 0 ? NONE : [...cidrs].sort(),
  };
}

const NONE: readonly string[] = [];
