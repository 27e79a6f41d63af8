import type { Claim, Side } from "./claim.ts";
import type { ClaimTable } from "./claim-table.ts";
import type { Said } from "./facts.ts";

/** Who says something, and what that is worth. */
export interface Speaker {
  readonly side: Side;
  readonly source: string;
  /** What is new counts whatever it turns foreign. */
  readonly consented: boolean;
  /** Monotonic milliseconds. */
  readonly now: number;
}

/** Takes in that objects say a CIDR. */
export function hearSaid(claims: ClaimTable, speaker: Speaker, cidr: string, said: Said): void {
  const { side, source, consented, now } = speaker;
  const { objects, problem } = said;
  const known = claims.get({ side, source, cidr });
  if (said.doubtful === true) {
    // Neither learned nor taken away.
    if (known?.gone !== undefined) claims.put({ ...known, gone: undefined });
  } else if (known !== undefined) {
    const again = known.gone === undefined ? {} : { saidSince: now, gone: undefined };
    claims.put({ ...known, objects, ...again });
  } else if (problem === undefined) {
    claims.put({ side, source, cidr, objects, stage: "pending", consented, saidSince: now });
  } else {
    claims.put({ side, source, cidr, objects, stage: "refused", why: problem, consented: false, unusable: true });
  }
}

/** Takes in that no object says a CIDR any more; one that counts goes later, if at all. */
export function hearGone(claims: ClaimTable, claim: Claim, now: number): void {
  if (claim.stage !== "effective") claims.drop(claim);
  else if (claim.gone === undefined) claims.put({ ...claim, gone: { at: now } });
}
