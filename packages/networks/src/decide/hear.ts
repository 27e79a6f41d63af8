import type { Claim, Side } from "./claim.ts";
import type { ClaimTable } from "./claim-table.ts";
import type { Said } from "./facts.ts";

/** Takes in that objects define a CIDR. */
export function hearSaid(
  claims: ClaimTable,
  { side, source }: { readonly side: Side; readonly source: string },
  cidr: string,
  { objects, problem, doubtful }: Said,
): void {
  const known = claims.get({ side, source, cidr });
  if (doubtful === true) {
    // Neither learned nor taken away.
    if (known?.gone !== undefined) claims.put({ ...known, gone: undefined });
  } else if (known !== undefined) claims.put({ ...known, objects, gone: undefined });
  else if (problem === undefined) claims.put({ side, source, cidr, objects, stage: "pending" });
  else claims.put({ side, source, cidr, objects, stage: "refused", why: problem, unusable: true });
}

/**
 * Takes in that no object defines a CIDR anymore: what is in effect stays for the removal delay.
 *
 * @param now milliseconds since the epoch
 */
export function hearGone(claims: ClaimTable, claim: Claim, now: number): void {
  if (claim.stage !== "effective") claims.drop(claim);
  else if (claim.gone === undefined) claims.put({ ...claim, gone: { at: now } });
}
