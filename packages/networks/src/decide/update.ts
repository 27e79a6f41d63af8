import type { IPFamily } from "@fairlead/base";
import { type Claim, claimKey } from "./claim.ts";
import type { ClaimTable } from "./claim-table.ts";
import { type CIDRReport, cidrReport, type SourceReport } from "./report.ts";

/** A learned CIDR whose report differs from the one before. */
export interface CIDRChange {
  /** Absent: it is new. */
  readonly before?: CIDRReport;
  /** Absent: it is gone. */
  readonly after?: CIDRReport;
}

/** What changed since the update before; its cost follows that. */
export interface NetworksUpdate {
  /** All of them. */
  readonly sources: readonly SourceReport[];
  /** In the order of side, source and text. */
  readonly changes: readonly CIDRChange[];
  /** How many learned CIDRs of other networks count, by source. */
  readonly counts: ReadonlyMap<string, Readonly<Record<IPFamily, number>>>;
  /** How many learned CIDRs are held. */
  readonly held: number;
}

/** Keeps what claims were before they changed. */
export class ClaimChanges {
  readonly #claims: ClaimTable;
  #before = new Map<string, Claim | undefined>();
  #held = 0;

  constructor(claims: ClaimTable) {
    this.#claims = claims;
    for (const claim of claims.all()) this.#before.set(claimKey(claim), undefined);
    claims.follow((before, after) => {
      this.#held += Number(after?.stage === "held") - Number(before?.stage === "held");
      const claim = after ?? before;
      if (claim === undefined) return;
      const key = claimKey(claim);
      if (!this.#before.has(key)) this.#before.set(key, before);
    });
  }

  /** How many are held. */
  get held(): number {
    return this.#held;
  }

  /** What changed since the last take, which it forgets. */
  take(): readonly CIDRChange[] {
    const taken = [...this.#before].sort(([a], [b]) => (a < b ? -1 : 1));
    this.#before = new Map();
    return taken.flatMap(([key, before]) => {
      const after = this.#claims.byKey(key);
      if (before === after) return [];
      return [{ ...(before && { before: cidrReport(before) }), ...(after && { after: cidrReport(after) }) }];
    });
  }
}
