import { containsCIDR } from "@fairlead/base";
import type { ServiceKey } from "@fairlead/core";
import type { Claim } from "./claim.ts";
import { type AcceptedCIDR, type Consent, type ForgottenCIDR, NO_CONSENT, readConsent } from "./consent-text.ts";
import { type ResourceState, stateAfter } from "./facts.ts";

/** A CIDR that counted under an agent of before, which knew no consent object. */
export type LegacyCIDR = Pick<Claim, "side" | "source" | "cidr">;

/** `legacy`: an agent of before let it take effect. */
export type Acceptance = "accepted" | "legacy";

/** What is known of the consent of an agent's predecessor. */
export interface KnownConsent {
  /** The object as it was last read; absent: it was never read. */
  readonly read?: Consent;
  /** What goes on counting until the object exists. */
  readonly legacy: readonly LegacyCIDR[];
  /** Since when the object is gone, milliseconds since the epoch; absent: it was there, or was never. */
  readonly goneAt?: number;
}

export const NO_KNOWN_CONSENT: KnownConsent = { legacy: [] };

/**
 * What operators accepted, had forgotten and leave unprotected: the object `fairlead-networks`, or the last one read
 * while it cannot be.
 */
export class ConsentFacts {
  #read: Consent | undefined;
  #legacy: readonly LegacyCIDR[];
  #state: ResourceState = "waiting";
  #exists = false;
  /** Milliseconds since the epoch. */
  #goneAt: number | undefined;
  #reported = new Set<string>();
  #changed = false;

  constructor({ read, legacy, goneAt }: KnownConsent) {
    this.#read = read;
    this.#legacy = legacy;
    this.#goneAt = goneAt;
  }

  get state(): ResourceState | "empty" {
    return this.#state === "listed" && !this.#exists ? "empty" : this.#state;
  }

  /** Nothing is waited for at the start. */
  get settled(): boolean {
    return this.#state !== "waiting" || this.#read !== undefined;
  }

  get known(): KnownConsent {
    return {
      ...(this.#read && { read: this.#read }),
      legacy: this.#legacy,
      ...(this.#goneAt !== undefined && { goneAt: this.#goneAt }),
    };
  }

  /**
   * @param raw the ConfigMap, straight from JSON and untrusted
   * @returns what is wrong with it and was not reported before
   */
  set(raw: unknown): readonly string[] {
    const { consent, problems } = readConsent(raw, this.#read ?? NO_CONSENT);
    this.#exists = true;
    this.#goneAt = undefined;
    this.#changed ||= this.#legacy.length > 0;
    this.#legacy = [];
    this.#take(consent);
    const fresh = problems.filter((one) => !this.#reported.has(one));
    this.#reported = new Set(problems);
    return fresh;
  }

  /** @param now milliseconds since the epoch */
  delete(now: number): void {
    if (!this.#exists) return;
    this.#exists = false;
    this.#goneAt = now;
  }

  /** @param now milliseconds since the epoch */
  setState(state: Exclude<ResourceState, "waiting">, now: number): void {
    this.#state = stateAfter(this.#state, state);
    if (state !== "listed" || this.#exists) return;
    // The agent before this one may have read an object that is gone since.
    if (this.#read === undefined) this.#read = NO_CONSENT;
    // A clock that was set back since must not make it last.
    else this.#goneAt = Math.min(this.#goneAt ?? now, now);
  }

  /** Milliseconds since the epoch when what a deleted object said ends; undefined: nothing ends. */
  endsAt(removalDelayMs: number): number | undefined {
    // What the agent before knew holds until a list says whether the object is there again.
    return this.#goneAt === undefined || this.#state === "waiting" ? undefined : this.#goneAt + removalDelayMs;
  }

  /** Takes in what is due; whether anything is decided otherwise since the last call. */
  take(now: number, removalDelayMs: number): boolean {
    if (now >= (this.endsAt(removalDelayMs) ?? Number.POSITIVE_INFINITY)) {
      this.#take(NO_CONSENT);
      this.#goneAt = undefined;
    }
    const changed = this.#changed;
    this.#changed = false;
    return changed;
  }

  accepts({ side, source, cidr }: Pick<Claim, "side" | "source" | "cidr">): Acceptance | undefined {
    const isAccepted = (one: AcceptedCIDR) =>
      (one.source === undefined || one.source === source) && containsCIDR(one.cidr, cidr);
    const isLegacy = (one: LegacyCIDR) => one.side === side && one.source === source && one.cidr === cidr;
    if (this.#read?.accepted.some(isAccepted) === true) return "accepted";
    return this.#legacy.some(isLegacy) ? "legacy" : undefined;
  }

  /** @param now milliseconds since the epoch */
  forgets(cidr: string, now: number): boolean {
    const applies = ({ until }: ForgottenCIDR) => until === undefined || now < until;
    return this.#read?.forgotten.some((one) => applies(one) && containsCIDR(one.cidr, cidr)) === true;
  }

  get unprotected(): readonly ServiceKey[] {
    return this.#read?.unprotected ?? NO_CONSENT.unprotected;
  }

  #take(consent: Consent): void {
    this.#changed ||= JSON.stringify(consent) !== JSON.stringify(this.#read ?? NO_CONSENT);
    this.#read = consent;
  }
}
