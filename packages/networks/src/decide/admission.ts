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

/** Lets learnt CIDRs count, and remembers what that turned foreign since an operator's last consent. */
export class Admission {
  readonly #claims: ClaimTable;
  #turned: ReadonlySet<ServiceKey>;
  #heldBack = 0;

  constructor(claims: ClaimTable, turned: Iterable<ServiceKey>) {
    this.#claims = claims;
    this.#turned = new Set(turned);
  }

  /** Services that learnt CIDRs turned foreign since the last consent. */
  get turned(): ReadonlySet<ServiceKey> {
    return this.#turned;
  }

  /** How many services would be foreign if what is held counted, since the last consent. */
  get heldBack(): number {
    return this.#heldBack;
  }

  /** An operator lets through what is held now; returns how many CIDRs these are. */
  accept(): number {
    const held = this.#claims.all().filter(({ stage }) => stage === "held");
    for (const claim of held) claim.consented = true;
    if (held.length > 0) this.#turned = new Set();
    return held.length;
  }

  /** Our own, and what was consented to, counts whatever it turns. */
  free(now: () => number): void {
    for (const claim of this.#waiting()) if (isFree(claim)) count(claim, now());
  }

  /** What is left is guarded. */
  *guard({ filterWith, services, maxForeignPercent, now }: AdmissionRequest): Generator<void, void> {
    const pending = this.#waiting().filter((claim) => !isFree(claim));
    const before = this.#turned;
    const { admitted, held, turned, heldBack } = yield* admit({
      pending,
      filterWith,
      services,
      turned: new Set([...before].filter((key) => services.service(key) !== undefined)),
      maxForeignPercent,
    });
    // Between two steps an operator may have consented to all that was turned before.
    this.#turned = this.#turned === before ? turned : new Set([...turned].filter((key) => !before.has(key)));
    this.#heldBack = heldBack;
    for (const claim of admitted) count(claim, now());
    const limit = `at most ${maxForeignPercent} % may without consent`;
    for (const claim of held) {
      claim.stage = "held";
      claim.why = `with what came before, ${heldBack} of ${services.size} services would turn foreign; ${limit}`;
    }
  }

  #waiting(): readonly Claim[] {
    return this.#claims.all().filter(({ stage }) => stage === "pending" || stage === "held");
  }
}

function isFree({ side, consented }: Claim): boolean {
  return side === "own" || consented;
}

function count(claim: Claim, now: number): void {
  claim.stage = "effective";
  claim.since = now;
  delete claim.why;
}
