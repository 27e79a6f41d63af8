import { addressRange, isWithin } from "@fairlead/base";
import { type Claim, claimKey, type Side } from "./claim.ts";
import type { Said } from "./facts.ts";

/** What a source says now. */
export interface Heard {
  readonly side: Side;
  readonly source: string;
  readonly said: ReadonlyMap<string, Said>;
  /** What it does not say is gone; false: it may be there all the same. */
  readonly complete: boolean;
  /** What is new counts whatever it turns foreign. */
  readonly consented: boolean;
  /** Monotonic milliseconds. */
  readonly now: number;
}

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

  /** Takes what a source says now. */
  hear({ side, source, said, complete, consented, now }: Heard): void {
    for (const [cidr, { objects, problem }] of said) {
      const known = this.#claims.get(claimKey({ side, source, cidr }));
      if (known !== undefined) {
        known.objects = objects;
        if (known.gone !== undefined) known.saidSince = now;
        delete known.gone;
      } else if (problem === undefined)
        this.put({ side, source, cidr, objects, stage: "pending", consented, saidSince: now });
      else this.put({ side, source, cidr, objects, stage: "refused", why: problem, consented: false, unusable: true });
    }
    if (!complete) return;
    for (const [key, claim] of this.#claims) {
      if (claim.side !== side || claim.source !== source || said.has(claim.cidr)) continue;
      if (claim.stage === "effective") claim.gone ??= { at: now };
      else this.#claims.delete(key);
    }
  }

  /**
   * What is gone stays while an endpoint lies in it and for a while after: a CRD that is deleted takes all its objects
   * with it, and every service of that network would change hands.
   *
   * @param now monotonic milliseconds
   */
  *expire(isOccupied: (claim: Claim) => boolean, now: number, removalDelayMs: number): Generator<void, void> {
    for (const [key, claim] of this.#claims) {
      if (claim.gone === undefined) continue;
      const { at, emptySince } = claim.gone;
      if (isOccupied(claim)) claim.gone = { at };
      else if (emptySince === undefined) claim.gone = { at, emptySince: now };
      else if (now - emptySince >= removalDelayMs) this.#claims.delete(key);
      yield;
    }
  }

  /**
   * What is gone of another network ends at once where our own has said since then that it has all of the addresses:
   * what lies there now is ours. An own CIDR that was there before says nothing: it stood beside the other network's
   * object.
   *
   * @returns whether any ended
   */
  *handOver(): Generator<void, boolean> {
    const own = this.effective().flatMap(({ side, cidr, saidSince, gone }) =>
      side === "own" && saidSince !== undefined && gone === undefined ? [{ saidSince, range: addressRange(cidr) }] : [],
    );
    let any = false;
    if (own.length === 0) return any;
    for (const [key, { side, cidr, gone }] of this.#claims) {
      if (side === "own" || gone === undefined) continue;
      const range = addressRange(cidr);
      if (!own.some((one) => one.saidSince >= gone.at && isWithin(range, one.range))) continue;
      this.#claims.delete(key);
      any = true;
      yield;
    }
    return any;
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
