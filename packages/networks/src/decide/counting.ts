import { familyOf, type IPFamily } from "@fairlead/base";
import type { CIDRSide, CIDRSides } from "@fairlead/endpoint-filter";
import { type Claim, countsAs } from "./claim.ts";
import type { ClaimTable } from "./claim-table.ts";
import { type StaticCIDRs, writtenSides } from "./written.ts";

/**
 * The CIDRs that count, each on its side: what was written, and what was learned and let in. The same CIDR on both
 * sides: what was written wins over what was learned, then ours over theirs. Kept up with single changes.
 */
export class CountingCIDRs {
  readonly #claims: ClaimTable;
  readonly #writtenOwn: readonly string[];
  readonly #written: CIDRSides;
  readonly #counts = new Map<string, Record<IPFamily, number>>();
  #sides: CIDRSides;
  #clusterCIDRs: readonly string[];
  #dirty = new Set<string>();
  #changed: Set<string>;

  /** @param within entries of excluded sources */
  constructor(claims: ClaimTable, written: StaticCIDRs, within: readonly string[] = []) {
    this.#claims = claims;
    this.#writtenOwn = written.own;
    this.#written = writtenSides(written, within);
    this.#sides = this.#written;
    this.#clusterCIDRs = [...new Set(written.own)];
    // What was written is to be told as new with the first decision, too.
    this.#changed = new Set([...written.own, ...written.excluded]);
    for (const claim of claims.all()) this.#follow(undefined, claim);
    claims.follow((before, after) => this.#follow(before, after));
  }

  /** What was written only. */
  get writtenSides(): CIDRSides {
    return this.#written;
  }

  get sides(): CIDRSides {
    return this.#sides;
  }

  /** All of our own, for telling local traffic; the same list while they are the same. */
  get clusterCIDRs(): readonly string[] {
    return this.#clusterCIDRs;
  }

  /** How many learned CIDRs of other networks count, by source. */
  get counts(): ReadonlyMap<string, Readonly<Record<IPFamily, number>>> {
    return this.#counts;
  }

  /** CIDRs of which something may differ since the last take, which it forgets. */
  takeChanged(): ReadonlySet<string> {
    const changed = this.#changed;
    this.#changed = new Set();
    return changed;
  }

  /** Takes in what came, changed and went. */
  *update(): Generator<void, void> {
    const dirty = this.#dirty;
    this.#dirty = new Set();
    for (const cidr of dirty) {
      this.#changed.add(cidr);
      this.#sides = this.#sides.with(cidr, this.#sideOf(cidr));
      yield;
    }
    if ([...dirty].some((cidr) => this.#isOwn(cidr) !== this.#clusterCIDRs.includes(cidr))) {
      const learned = Array.from(this.#claims.all()).filter(countsAs("own"));
      this.#clusterCIDRs = [...new Set([...this.#writtenOwn, ...learned.map(({ cidr }) => cidr).sort()])];
    }
  }

  #sideOf(cidr: string): CIDRSide | undefined {
    const written = this.#written.side(cidr);
    if (written !== undefined) return written;
    if (this.#claims.at(cidr).some(countsAs("own"))) return "own";
    return this.#claims.at(cidr).some(countsAs("excluded")) ? "excluded" : undefined;
  }

  #isOwn(cidr: string): boolean {
    return this.#writtenOwn.includes(cidr) || this.#claims.at(cidr).some(countsAs("own"));
  }

  #follow(before: Claim | undefined, after: Claim | undefined): void {
    const difference = Number(after?.stage === "effective") - Number(before?.stage === "effective");
    const claim = after ?? before;
    if (difference === 0 || claim === undefined) return;
    this.#dirty.add(claim.cidr);
    if (claim.side === "own") return;
    const counts = this.#counts.get(claim.source) ?? { IPv4: 0, IPv6: 0 };
    counts[familyOf(claim.cidr)] += difference;
    this.#counts.set(claim.source, counts);
  }
}
