import { familyOf, IP_FAMILIES, ofFamily, overlap } from "@fairlead/base";
import { coverAll } from "@fairlead/endpoint-filter";
import { bySpecificity, type Claim } from "./claim.ts";
import type { StaticCIDRs } from "./resolve.ts";
import { longestPrefix } from "./search.ts";

/**
 * Which of the learnt CIDRs must not count, and why. The others do all the same. Whoever may create a network's object
 * could otherwise take all services. Comes in steps: there may be thousands.
 *
 * @param claims canonical CIDRs of both sides
 * @param serviceCIDRs canonical
 */
export function* refusals(
  written: StaticCIDRs,
  claims: readonly Claim[],
  serviceCIDRs: readonly string[],
): Generator<void, ReadonlyMap<Claim, string>> {
  const refused = new Map<Claim, string>();
  for (const claim of claims) {
    const met = serviceCIDRs.find((cidr) => overlap(cidr, claim.cidr));
    if (met !== undefined) refused.set(claim, `meets the service CIDR ${met}, which no pod's address is in`);
    yield;
  }
  const others = claims.filter((claim) => !refused.has(claim));
  const own = others.filter(({ side }) => side === "own").map(({ cidr }) => cidr);
  const excluded = others.filter(({ side }) => side === "excluded");
  for (const family of IP_FAMILIES) {
    const ours = [...written.own, ...own].filter(ofFamily(family));
    for (const claim of yield* leavingNothing(ours, written.excluded, excluded)) {
      refused.set(claim, `would leave nothing of our own ${ours.slice(0, 3).join(", ")} to this proxy`);
    }
  }
  return refused;
}

/** The widest are refused first, so that the set decides and not its history. */
function* leavingNothing(
  ours: readonly string[],
  written: readonly string[],
  excluded: readonly Claim[],
): Generator<void, readonly Claim[]> {
  const [some] = ours;
  if (some === undefined) return [];
  const candidates = excluded.filter(({ cidr }) => familyOf(cidr) === familyOf(some)).sort(bySpecificity);
  const leaves = function* (count: number) {
    const cidrs = [...written, ...candidates.slice(0, count).map(({ cidr }) => cidr)];
    for (const own of ours) {
      yield;
      if (!coverAll(cidrs, own)) return true;
    }
    return false;
  };
  const kept = yield* longestPrefix(candidates.length, leaves);
  return candidates.slice(kept).filter(({ cidr }) => ours.some((own) => overlap(own, cidr)));
}
