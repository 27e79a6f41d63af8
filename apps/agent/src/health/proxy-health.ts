import type { IPFamily } from "@fairlead/core";

/** What one family's sync loop last did, wall time in milliseconds since the epoch. */
interface FamilyHealth {
  lastUpdated: number;
  /** When the oldest change was queued that no sync has taken yet. */
  queuedSince?: number;
  /** The same of the changes that the running sync took. */
  takenSince?: number;
}

export interface HealthReport {
  /** The latest successful sync of any family; 0: none yet. */
  readonly lastUpdated: number;
  readonly currentTime: number;
  readonly healthy: boolean;
  readonly status: Readonly<Partial<Record<IPFamily, { readonly lastUpdated: number; readonly healthy: boolean }>>>;
}

/**
 * Tells whether queued changes reach the kernel in time. A family is unhealthy while a change has waited for `timeout`
 * milliseconds (upstream: 2 × syncPeriod); an idle one is healthy. Unlike upstream's, a change that arrives during a
 * sync keeps its own waiting time.
 */
export class ProxyHealth {
  readonly #timeout: number;
  readonly #now: () => number;
  readonly #families = new Map<IPFamily, FamilyHealth>();

  constructor(timeout: number, now: () => number) {
    this.#timeout = timeout;
    this.#now = now;
  }

  /** The family's loop runs from now on. */
  started(family: IPFamily): void {
    this.#families.set(family, { lastUpdated: this.#now() });
  }

  queued(family: IPFamily): void {
    const health = this.#of(family);
    health.queuedSince ??= this.#now();
  }

  /** A sync begins, with all that is queued. */
  taken(family: IPFamily): void {
    const health = this.#of(family);
    const since = health.takenSince ?? health.queuedSince;
    if (since !== undefined) health.takenSince = since;
    delete health.queuedSince;
  }

  /** The sync reached the kernel. After a failed one nothing is called: what it took goes on waiting. */
  updated(family: IPFamily): void {
    const health = this.#of(family);
    health.lastUpdated = this.#now();
    delete health.takenSince;
  }

  report(): HealthReport {
    const currentTime = this.#now();
    const status: Partial<Record<IPFamily, { lastUpdated: number; healthy: boolean }>> = {};
    for (const [family, health] of this.#families) {
      const since = health.takenSince ?? health.queuedSince;
      const healthy = since === undefined || currentTime - since < this.#timeout;
      status[family] = { lastUpdated: health.lastUpdated, healthy };
    }
    const all = Object.values(status);
    return {
      lastUpdated: Math.max(0, ...all.map((one) => one.lastUpdated)),
      currentTime,
      healthy: all.every((one) => one.healthy),
      status,
    };
  }

  #of(family: IPFamily): FamilyHealth {
    const known = this.#families.get(family);
    if (known !== undefined) return known;
    const fresh: FamilyHealth = { lastUpdated: this.#now() };
    this.#families.set(family, fresh);
    return fresh;
  }
}
