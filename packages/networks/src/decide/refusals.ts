import { familyOf, IP_FAMILIES, type IPFamily, overlap, PrefixMap } from "@fairlead/base";
import { bySpecificity, type Claim } from "./claim.ts";
import type { ClaimTable } from "./claim-table.ts";
import type { StaticCIDRs } from "./written.ts";

interface Candidate {
  readonly cidr: string;
}

type Candidates = PrefixMap<Candidate>;

/**
 * Which of the learned CIDRs must not count, and why. The others do all the same. Whoever may create a network's object
 * could otherwise take all services. Looks only at what came and went since the last time, but for the rare case that
 * nothing would be left to this proxy.
 */
export class Refusals {
  readonly #claims: ClaimTable;
  readonly #writtenOwn: ReadonlySet<string>;
  readonly #writtenExcluded: ReadonlySet<string>;
  /** CIDRs of our own in the order in which they came, and those that others say they have. */
  readonly #own: Record<IPFamily, Set<string>> = { IPv4: new Set(), IPv6: new Set() };
  #excluded: Candidates = PrefixMap.empty();
  readonly #met = new Map<string, string>();
  readonly #crowding: Record<IPFamily, ReadonlyMap<string, string>> = { IPv4: new Map(), IPv6: new Map() };
  #serviceCIDRs: readonly string[] = [];
  #dirty = new Set<string>();

  constructor(claims: ClaimTable, { own, excluded }: StaticCIDRs) {
    this.#claims = claims;
    this.#writtenOwn = new Set(own);
    this.#writtenExcluded = new Set(excluded);
    for (const cidr of own) this.#own[familyOf(cidr)].add(cidr);
    for (const cidr of excluded) this.#excluded = this.#excluded.with(cidr, { cidr });
    for (const claim of claims.all()) this.#dirty.add(claim.cidr);
    claims.follow((before, after) => {
      const one = after ?? before;
      if ((before === undefined || after === undefined) && one?.unusable !== true && one) this.#dirty.add(one.cidr);
    });
  }

  /** @param cidrs canonical */
  setServiceCIDRs(cidrs: readonly string[]): void {
    if (cidrs.join() === this.#serviceCIDRs.join()) return;
    this.#serviceCIDRs = cidrs;
    for (const { cidr, unusable } of this.#claims.all()) if (unusable !== true) this.#dirty.add(cidr);
  }

  /** Refuses and no longer refuses; a CIDR that is not refused any more is decided anew. */
  *settle(): Generator<void, void> {
    const dirty = this.#dirty;
    if (dirty.size === 0) return;
    this.#dirty = new Set();
    const families = new Set<IPFamily>();
    for (const cidr of dirty) {
      this.#look(cidr);
      families.add(familyOf(cidr));
      yield;
    }
    const changed = new Set(dirty);
    for (const family of IP_FAMILIES.filter((one) => families.has(one))) {
      const before = this.#crowding[family];
      this.#crowding[family] = yield* this.#crowdingIn(family);
      for (const cidr of [...before.keys(), ...this.#crowding[family].keys()]) changed.add(cidr);
    }
    for (const cidr of changed) {
      for (const claim of this.#claims.at(cidr)) this.#apply(claim);
      yield;
    }
  }

  #look(cidr: string): void {
    const met = this.#serviceCIDRs.find((one) => overlap(one, cidr));
    if (met === undefined) this.#met.delete(cidr);
    else this.#met.set(cidr, `overlaps the service CIDR ${met}, which has no pod addresses`);
    const sides = met === undefined ? this.#claims.at(cidr).map(({ side }) => side) : [];
    if (this.#writtenOwn.has(cidr) || sides.includes("own")) this.#own[familyOf(cidr)].add(cidr);
    else this.#own[familyOf(cidr)].delete(cidr);
    const isExcluded = this.#writtenExcluded.has(cidr) || sides.includes("excluded");
    if (!isExcluded) this.#excluded = this.#excluded.without(cidr);
    else if (this.#excluded.get(cidr) === undefined) this.#excluded = this.#excluded.with(cidr, { cidr });
  }

  /** The widest are refused first, so that the set decides and not its history. */
  *#crowdingIn(family: IPFamily): Generator<void, ReadonlyMap<string, string>> {
    const ours = [...this.#own[family]];
    const leaves = (cidrs: Candidates) => ours.some((own) => !cidrs.covers(own));
    if (ours.length === 0 || leaves(this.#excluded)) return new Map();
    const isLearned = ({ cidr }: Candidate) => familyOf(cidr) === family && !this.#writtenExcluded.has(cidr);
    let counting: Candidates = PrefixMap.empty();
    for (const cidr of this.#writtenExcluded) counting = counting.with(cidr, { cidr });
    const candidates = Array.from(this.#excluded.values()).filter(isLearned).sort(bySpecificity);
    let kept = 0;
    for (const candidate of candidates) {
      counting = counting.with(candidate.cidr, candidate);
      yield;
      if (!leaves(counting)) break;
      kept++;
    }
    const why = `would cover all of this proxy's own ${ours.slice(0, 3).join(", ")}`;
    const crowding = candidates.slice(kept).filter(({ cidr }) => ours.some((own) => overlap(own, cidr)));
    return new Map(crowding.map(({ cidr }) => [cidr, why]));
  }

  #apply(claim: Claim): void {
    if (claim.unusable === true) return;
    const crowds = claim.side === "excluded" ? this.#crowding[familyOf(claim.cidr)].get(claim.cidr) : undefined;
    const why = this.#met.get(claim.cidr) ?? crowds;
    if (why === undefined) {
      if (claim.stage === "refused") this.#claims.put({ ...claim, stage: "pending", why: undefined });
    } else if (claim.gone !== undefined) this.#claims.drop(claim);
    else if (claim.stage !== "refused" || claim.why !== why)
      this.#claims.put({ ...claim, stage: "refused", why, since: undefined });
  }
}
