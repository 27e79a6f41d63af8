import type { EndpointFilter, ServiceKey } from "@fairlead/core";
import type { ServicesView } from "../services/view.ts";
import type { Claim } from "./claim.ts";
import type { ClaimTable } from "./claim-table.ts";
import { admit } from "./guard.ts";

export interface AdmissionRequest {
  /** What decides when these count, beside all that do already. */
  readonly filterWith: (claims: readonly Claim[]) => EndpointFilter;
  readonly services: ServicesView;
  /** 0 to 100 */
  readonly maxForeignPercent: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Lets learned CIDRs count, and remembers what that turned foreign since an operator's last consent. */
export class Admission {
  readonly #claims: ClaimTable;
  #turned: Set<ServiceKey>;
  #heldBack = 0;

  constructor(claims: ClaimTable, turned: Iterable<ServiceKey>) {
    this.#claims = claims;
    this.#turned = new Set(turned);
  }

  /** Services that learned CIDRs turned foreign since the last consent; some may be gone since. */
  get turned(): ReadonlySet<ServiceKey> {
    return this.#turned;
  }

  /** How many services would be foreign if what is held counted, since the last consent. */
  get heldBack(): number {
    return this.#heldBack;
  }

  /** An operator lets through what is held now; returns how many CIDRs these are. */
  accept(): number {
    const held = this.#claims.waiting().filter(({ stage }) => stage === "held");
    for (const claim of held) this.#claims.put({ ...claim, consented: true });
    if (held.length > 0) this.#turned = new Set();
    return held.length;
  }

  /** Our own, and what was consented to, counts whatever it turns. */
  free(now: () => number): void {
    for (const claim of this.#claims.waiting()) if (isFree(claim)) this.#count(claim, now());
  }

  /** What is left is guarded. */
  *guard({ filterWith, services, maxForeignPercent, now }: AdmissionRequest): Generator<void, void> {
    const pending = this.#claims.waiting().filter((claim) => !isFree(claim));
    const before = this.#turned;
    const verdict = yield* admit({ pending, filterWith, services, turned: before, maxForeignPercent });
    const { admitted, held, newlyTurned, heldBack } = verdict;
    this.#heldBack = heldBack;
    // Between two steps an operator may have consented: to all that was turned before, and to what was held.
    for (const key of newlyTurned) this.#turned.add(key);
    for (const claim of admitted) this.#count(this.#claims.get(claim), now());
    const limit = `more than ${maxForeignPercent} % needs consent`;
    for (const claim of held) {
      const known = this.#claims.get(claim) ?? claim;
      const why = `together with earlier changes, ${heldBack} of ${services.size} services would become foreign; ${limit}`;
      if (known.stage !== "held" || known.why !== why) this.#claims.put({ ...known, stage: "held", why });
    }
  }

  #count(claim: Claim | undefined, now: number): void {
    if (claim !== undefined) this.#claims.put({ ...claim, stage: "effective", since: now, why: undefined });
  }
}

function isFree({ side, consented }: Claim): boolean {
  return side === "own" || consented;
}
