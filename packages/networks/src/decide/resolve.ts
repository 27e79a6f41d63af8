import { containsCIDR } from "@fairlead/base";
import { bySpecificity, type Claim, type Side } from "./claim.ts";

/** CIDRs that an operator wrote, canonical. */
export type StaticCIDRs = Readonly<Record<Side, readonly string[]>>;

/** What decides for endpoints: the longest prefix; no CIDR is on both sides. In canonical order. */
export interface ResolvedCIDRs {
  readonly excludeCIDRs: readonly string[];
  readonly ownCIDRs: readonly string[];
}

/**
 * Unites what was written and what was learnt. The same CIDR on both sides: what was written wins over what was learnt,
 * then ours over theirs. Of the written ones an own CIDR within an excluded one says nothing of endpoints, as without
 * any source: it is there for masquerading.
 */
export function resolve(written: StaticCIDRs, claims: Iterable<Claim>): ResolvedCIDRs {
  const learnt: Record<Side, string[]> = { own: [], excluded: [] };
  for (const { side, cidr } of claims) learnt[side].push(cidr);
  const sides = new Map<string, Side>();
  const put = (side: Side, cidrs: readonly string[]) => {
    for (const cidr of cidrs) if (!sides.has(cidr)) sides.set(cidr, side);
  };
  put("excluded", written.excluded);
  put("own", ownBesides(written));
  put("own", learnt.own);
  put("excluded", learnt.excluded);
  const of = (wanted: Side) => {
    const found = Array.from(sides, ([cidr, side]) => ({ cidr, side })).filter(({ side }) => side === wanted);
    return found.sort(bySpecificity).map(({ cidr }) => cidr);
  };
  return { excludeCIDRs: of("excluded"), ownCIDRs: of("own") };
}

function ownBesides({ own, excluded }: StaticCIDRs): readonly string[] {
  return own.filter((cidr) => !excluded.some((wide) => containsCIDR(wide, cidr)));
}
