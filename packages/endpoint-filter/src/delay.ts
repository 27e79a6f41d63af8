import type { Clock } from "@fairlead/base";
import {
  type EndpointFilter,
  type IPFamily,
  type MemoryUpdate,
  type OwnershipDecision,
  type ServiceKey,
  serviceKey,
} from "@fairlead/core";

interface Waiting {
  readonly service: ServiceKey;
  /** Monotonic milliseconds. */
  readonly since: number;
}

/**
 * Keeps a service whose last endpoint here went for a moment: a restarted pod comes back, and until then the service is
 * proxied to the endpoints that it has. Everything else is decided at once: first endpoints, those that come here, and
 * other CIDRs.
 */
export class OwnershipDelay {
  readonly #delayMs: number;
  readonly #clock: Pick<Clock, "monotonic" | "after">;
  readonly #waiting = new Map<string, Waiting>();
  #exempt: ReadonlySet<ServiceKey> = new Set();
  #last: { readonly of: EndpointFilter; readonly delayed: EndpointFilter } | undefined;
  #onDue: () => void = () => {};
  #cancel: (() => void) | undefined;

  /** @param delayMs 0: nothing waits */
  constructor(delayMs: number, clock: Pick<Clock, "monotonic" | "after">) {
    this.#delayMs = delayMs;
    this.#clock = clock;
  }

  /**
   * Begins to call back when a delay has passed.
   *
   * @param onDue is called when services that waited are to be decided again
   */
  start(onDue: () => void): void {
    this.#onDue = onDue;
    this.#arm();
  }

  /** Stops calling back. */
  stop(): void {
    this.#onDue = () => {};
    this.#cancel?.();
  }

  /** The same filter for the same one, so that it is seen not to have changed. */
  around(filter: EndpointFilter): EndpointFilter {
    if (this.#delayMs === 0) return filter;
    if (this.#last?.of === filter) return this.#last.delayed;
    const delayed: EndpointFilter = {
      ...filter,
      decide: (service, family, endpoints, remembered) => {
        const decision = filter.decide(service, family, endpoints, remembered);
        const key = serviceKey(service.namespace, service.name);
        return this.#kept(key, family, decision, remembered) ?? decision;
      },
    };
    this.#last = { of: filter, delayed };
    return delayed;
  }

  /**
   * Lets these services change hands without a delay in the next planning step.
   *
   * @param services those that CIDRs or rules decide otherwise than before: nothing of them waits
   */
  exempt(services: ReadonlySet<ServiceKey>): void {
    this.#exempt = services;
  }

  /**
   * Forgets delays of services that are gone.
   *
   * @param updates of a planning step: a service that it forgets is gone, and waits no longer
   */
  forget(updates: Iterable<MemoryUpdate>): void {
    for (const { service, family, ownership } of updates) {
      if (ownership === undefined && this.#waiting.delete(waitingKey(service, family))) this.#arm();
    }
  }

  /** The services whose time is over. */
  due(): readonly ServiceKey[] {
    const now = this.#clock.monotonic();
    const over = [...this.#waiting.values()].filter(({ since }) => now - since >= this.#delayMs);
    return over.map(({ service }) => service);
  }

  #kept(
    service: ServiceKey,
    family: IPFamily,
    decision: OwnershipDecision,
    remembered: OwnershipDecision["ownership"] | undefined,
  ): OwnershipDecision | undefined {
    const key = waitingKey(service, family);
    const goes = decision.ownership === "foreign" && decision.decidedBy === "endpoints" && decision.ownEndpoints === 0;
    if (!goes || remembered === undefined || remembered === "foreign" || this.#exempt.has(service)) {
      this.#waiting.delete(key);
      return undefined;
    }
    const now = this.#clock.monotonic();
    const since = this.#waiting.get(key)?.since ?? now;
    if (now - since >= this.#delayMs) {
      this.#waiting.delete(key);
      return undefined;
    }
    this.#waiting.set(key, { service, since });
    this.#arm();
    const { protected: _served, ...rest } = decision;
    const why = `${decision.why}; its last endpoint here went, so it stays ${remembered} for up to ${this.#delayMs / 1_000} s`;
    return { ...rest, ownership: remembered, frontends: "all", why };
  }

  /** One timer, for the first that is not due yet: those that are wait for the sync that was asked for. */
  #arm(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const now = this.#clock.monotonic();
    const since = this.#firstNotDue(now);
    if (since === undefined) return;
    this.#cancel = this.#clock.after(since + this.#delayMs - now, () => {
      this.#onDue();
      this.#arm();
    });
  }

  /** Looks no further than it has to: it is asked for each service that begins to wait, and they are in that order. */
  #firstNotDue(now: number): number | undefined {
    for (const { since } of this.#waiting.values()) if (now - since < this.#delayMs) return since;
    return undefined;
  }
}

function waitingKey(service: ServiceKey, family: IPFamily): string {
  return `${service} ${family}`;
}
