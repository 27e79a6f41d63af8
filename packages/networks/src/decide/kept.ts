import type { Claim } from "./claim.ts";
import type { ClaimTable } from "./claim-table.ts";

export interface KeepingRules {
  /** Whether what its objects do not say is known not to exist. */
  readonly readable: (claim: Claim) => boolean;
  /** Whether an operator had the CIDR forgotten. */
  readonly forgets: (cidr: string) => boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly removalDelayMs: number;
}

/**
 * Forgets what no object defines anymore after the removal delay, by the wall clock, so a restart does not begin it
 * again. While a source cannot be read its last list stays: a CRD that is deleted takes all its objects with it.
 */
export function forget(claims: ClaimTable, { readable, forgets, now, removalDelayMs }: KeepingRules): void {
  for (const claim of claims.gone()) {
    const at = claim.gone?.at;
    if (forgets(claim.cidr)) claims.drop(claim);
    else if (!readable(claim)) {
      if (at !== undefined) claims.put({ ...claim, gone: {} });
    } else if (at === undefined || at > now) claims.put({ ...claim, gone: { at: now } });
    else if (now - at >= removalDelayMs) claims.drop(claim);
  }
}
