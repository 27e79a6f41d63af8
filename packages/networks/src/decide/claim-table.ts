import { type Claim, claimKey, type Side } from "./claim.ts";
import type { Said } from "./facts.ts";

/** All claims, by side, source and CIDR. */
export class ClaimTable {
  readonly #claims = new Map<string, Claim>();

  all(): readonly Claim[] {
    return [...this.#claims.values()];
  }

  /** Those that count. */
  effective(): readonly Claim[] {
    return this.all().filter(({ stage }) => stage === "effective");
  }

  put(claim: Claim): void {
    this.#claims.set(claimKey(claim), claim);
  }

  /**
   * Takes what a source says now.
   *
   * @param complete what it does not say is gone; false: it may be there all the same
   * @param consented what is new counts whatever it turns foreign
   */
  hear(side: Side, source: string, said: ReadonlyMap<string, Said>, complete: boolean, consented: boolean): void {
    for (const [cidr, { objects, problem }] of said) {
      const known = this.#claims.get(claimKey({ side, source, cidr }));
      if (known !== undefined) {
        known.objects = objects;
        delete known.gone;
      } else if (problem === undefined) this.put({ side, source, cidr, objects, stage: "pending", consented });
      else this.put({ side, source, cidr, objects, stage: "refused", why: problem, consented: false, unusable: true });
    }
    if (!complete) return;
    for (const [key, claim] of this.#claims) {
      if (claim.side !== side || claim.source !== source || said.has(claim.cidr)) continue;
      if (claim.stage === "effective") claim.gone ??= {};
      else this.#claims.delete(key);
    }
  }

  /**
   * What is gone stays while an endpoint lies in it and for a while after: a CRD that is deleted takes all its objects
   * with it, and every service of that network would change hands.
   *
   * @param now monotonic milliseconds
   */
  expire(isEmpty: (cidr: string) => boolean, now: number, removalDelayMs: number): void {
    for (const [key, claim] of this.#claims) {
      if (claim.gone === undefined) continue;
      if (!isEmpty(claim.cidr)) claim.gone = {};
      else if (claim.gone.emptySince === undefined) claim.gone = { emptySince: now };
      else if (now - claim.gone.emptySince >= removalDelayMs) this.#claims.delete(key);
    }
  }

  /** Refuses and no longer refuses, as the reasons say; a CIDR that is not refused any more has to be decided anew. */
  refuse(reasons: ReadonlyMap<Claim, string>): void {
    for (const claim of this.#claims.values()) {
      const why = reasons.get(claim);
      if (claim.unusable === true) continue;
      if (why !== undefined) {
        claim.stage = "refused";
        claim.why = why;
        delete claim.since;
      } else if (claim.stage === "refused") {
        claim.stage = "pending";
        delete claim.why;
      }
    }
  }
}
