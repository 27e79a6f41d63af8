import { addressRange, isWithin } from "@fairlead/base";
import { type Claim, countsAs } from "./claim.ts";
import type { ClaimTable } from "./claim-table.ts";

/**
 * What is gone stays while an endpoint lies in it and for a while after: a CRD that is deleted takes all its objects
 * with it, and every service of that network would change hands.
 *
 * @param now monotonic milliseconds
 */
export function* expire(
  claims: ClaimTable,
  isOccupied: (claim: Claim) => boolean,
  now: number,
  removalDelayMs: number,
): Generator<void, void> {
  for (const claim of claims.gone()) {
    if (claim.gone === undefined) continue;
    const { at, emptySince } = claim.gone;
    if (isOccupied(claim)) {
      if (emptySince !== undefined) claims.put({ ...claim, gone: { at } });
    } else if (emptySince === undefined) claims.put({ ...claim, gone: { at, emptySince: now } });
    else if (now - emptySince >= removalDelayMs) claims.drop(claim);
    yield;
  }
}

/**
 * What is gone of another network ends at once where our own has said since then that it has all of the addresses: what
 * lies there now is ours. An own CIDR that was there before says nothing: it stood beside the other network's object.
 *
 * @returns whether any ended
 */
export function* handOver(claims: ClaimTable): Generator<void, boolean> {
  const gone = claims.gone().filter(({ side }) => side === "excluded");
  let any = false;
  if (gone.length === 0) return any;
  const own = Array.from(claims.all())
    .filter(countsAs("own"))
    .flatMap(({ cidr, saidSince, gone: left }) =>
      saidSince !== undefined && left === undefined ? [{ saidSince, range: addressRange(cidr) }] : [],
    );
  for (const claim of gone) {
    const at = claim.gone?.at ?? 0;
    const range = addressRange(claim.cidr);
    if (!own.some((one) => one.saidSince >= at && isWithin(range, one.range))) continue;
    claims.drop(claim);
    any = true;
    yield;
  }
  return any;
}
