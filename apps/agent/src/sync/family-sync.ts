import type { Clock } from "@fairlead/base";
import type { Backend, ForwardingPlan, IPFamily, PlanChange, SyncReport } from "@fairlead/core";
import { type BackoffLimits, backoffDelay } from "./backoff.ts";
import type { SyncKind } from "./sync-loop.ts";

export type FamilyOutcome =
  | { readonly kind: "synced"; readonly report: SyncReport; readonly milliseconds: number }
  /** The kernel is as the plan says already. */
  | { readonly kind: "unchanged" }
  /** It failed a while ago and its back-off is not over. */
  | { readonly kind: "waiting" }
  | {
      readonly kind: "failed";
      readonly sync: SyncKind;
      readonly error: unknown;
      readonly milliseconds: number;
      readonly retryIn: number;
    };

/**
 * One family's backend with what it owes to the kernel. After a failed sync it owes everything, and waits for its
 * back-off whatever else happens; the other family is not held up by that.
 */
export class FamilySync {
  readonly family: IPFamily;
  readonly backend: Backend;
  readonly #backoff: BackoffLimits;
  readonly #clock: Clock;
  readonly #random: () => number;
  #owesAll = true;
  #failures = 0;
  #retryAt = 0;

  constructor(family: IPFamily, backend: Backend, backoff: BackoffLimits, clock: Clock, random = Math.random) {
    this.family = family;
    this.backend = backend;
    this.#backoff = backoff;
    this.#clock = clock;
    this.#random = random;
  }

  /** Milliseconds until it wants to be run again; undefined: nothing is owed. */
  get retryIn(): number | undefined {
    return this.#owesAll ? Math.max(0, this.#retryAt - this.#clock.monotonic()) : undefined;
  }

  /** The next run writes everything. */
  owesAll(): void {
    this.#owesAll = true;
  }

  /** A plan is being made for `run`, or will soon be: what can be done without it begins. */
  prepare(): void {
    if (this.#owesAll && this.#clock.monotonic() >= this.#retryAt) this.backend.prepare?.();
  }

  /**
   * Brings the kernel to the plan.
   *
   * @param change what the plan underwent since the last call; it must not be left out
   * @param planning milliseconds that the plan took; a sync's duration has them in it, as upstream's has
   */
  async run(plan: ForwardingPlan, change: PlanChange | undefined, planning = 0): Promise<FamilyOutcome> {
    if (!this.#owesAll && change === undefined) return { kind: "unchanged" };
    const now = this.#clock.monotonic();
    if (this.#owesAll && now < this.#retryAt) return { kind: "waiting" };
    const start = now - planning;
    const sync: SyncKind = this.#owesAll || change === undefined ? "full" : "partial";
    try {
      const report = await (sync === "full" || change === undefined
        ? this.backend.sync(plan)
        : this.backend.apply(plan, change));
      this.#owesAll = false;
      this.#failures = 0;
      return { kind: "synced", report, milliseconds: this.#clock.monotonic() - start };
    } catch (error) {
      return this.#failed(sync, error, start);
    }
  }

  /**
   * Looks after what has to wait.
   *
   * @returns milliseconds until it wants to be called again; undefined: it does not
   */
  async maintain(): Promise<number | undefined> {
    if (this.#owesAll) return undefined;
    try {
      return await this.backend.maintain?.();
    } catch (error) {
      this.#failed("partial", error, this.#clock.monotonic());
      throw error;
    }
  }

  #failed(sync: SyncKind, error: unknown, start: number): FamilyOutcome {
    this.#owesAll = true;
    this.#failures++;
    const retryIn = backoffDelay(this.#failures, this.#backoff, this.#random());
    const now = this.#clock.monotonic();
    this.#retryAt = now + retryIn;
    return { kind: "failed", sync, error, milliseconds: now - start, retryIn };
  }
}
