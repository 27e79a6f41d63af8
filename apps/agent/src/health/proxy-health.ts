import type { Clock } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";

/** What one family's sync loop last did: monotonic milliseconds, for the wall clock may jump while a change waits. */
interface FamilyHealth {
  /** Wall time, milliseconds since the epoch: for people. */
  lastUpdated: number;
  /** When the oldest change was queued that no sync has taken yet. */
  queuedSince?: number;
  /** The same of the changes that the running sync took. */
  takenSince?: number;
  /** When a sync last got on: it made a step, or succeeded. */
  progressAt?: number;
  /** No sync has succeeded since one failed: their steps count for nothing. */
  failing?: true;
  /** A sync has succeeded since the proxy started. */
  inPlace?: true;
}

export interface HealthReport {
  /** The latest successful sync of any family; 0: none yet. */
  readonly lastUpdated: number;
  readonly currentTime: number;
  readonly healthy: boolean;
  /** Each family's rules have reached the kernel since the proxy started. */
  readonly rulesInPlace: boolean;
  readonly status: Readonly<Partial<Record<IPFamily, { readonly lastUpdated: number; readonly healthy: boolean }>>>;
}

/**
 * Reports whether queued changes reach the kernel in time. A family is unhealthy while a change has waited for
 * `timeout` milliseconds (upstream: 2 × syncPeriod) and no sync got on in that time; an idle one is healthy. Unlike
 * upstream's, a change that arrives during a sync keeps its own waiting time; and a sync that takes long, but gets on,
 * is no reason to start the proxy again, which would begin it anew. What a sync does after one that failed counts when
 * it has succeeded.
 */
export class ProxyHealth {
  readonly #timeout: number;
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  readonly #families = new Map<IPFamily, FamilyHealth>();

  constructor(timeout: number, clock: Pick<Clock, "now" | "monotonic">) {
    this.#timeout = timeout;
    this.#clock = clock;
  }

  /** The family's loop runs from now on. */
  started(family: IPFamily): void {
    this.#families.set(family, { lastUpdated: this.#clock.now() });
  }

  queued(family: IPFamily): void {
    const health = this.#of(family);
    health.queuedSince ??= this.#clock.monotonic();
  }

  /** A sync begins, with all that is queued. */
  taken(family: IPFamily): void {
    const health = this.#of(family);
    const since = health.takenSince ?? health.queuedSince;
    if (since !== undefined) health.takenSince = since;
    delete health.queuedSince;
  }

  /** The running sync has made a step. */
  progressed(family: IPFamily): void {
    const health = this.#of(family);
    if (health.failing === undefined) health.progressAt = this.#clock.monotonic();
  }

  /** The sync failed: what it took goes on waiting. */
  failed(family: IPFamily): void {
    const health = this.#of(family);
    health.failing = true;
    delete health.progressAt;
  }

  /** The sync reached the kernel. */
  updated(family: IPFamily): void {
    const health = this.#of(family);
    health.lastUpdated = this.#clock.now();
    health.inPlace = true;
    delete health.takenSince;
    delete health.failing;
    this.progressed(family);
  }

  report(): HealthReport {
    const now = this.#clock.monotonic();
    const status: Partial<Record<IPFamily, { lastUpdated: number; healthy: boolean }>> = {};
    for (const [family, health] of this.#families) {
      const { takenSince, queuedSince, progressAt } = health;
      const since = takenSince ?? queuedSince;
      const recently = (at: number | undefined) => at !== undefined && now - at < this.#timeout;
      const healthy = since === undefined || recently(since) || recently(progressAt);
      status[family] = { lastUpdated: health.lastUpdated, healthy };
    }
    const all = Object.values(status);
    return {
      lastUpdated: Math.max(0, ...all.map((one) => one.lastUpdated)),
      currentTime: this.#clock.now(),
      healthy: all.every((one) => one.healthy),
      // Before the first sync begins no family is known.
      rulesInPlace: all.length > 0 && [...this.#families.values()].every(({ inPlace }) => inPlace === true),
      status,
    };
  }

  #of(family: IPFamily): FamilyHealth {
    const known = this.#families.get(family);
    if (known !== undefined) return known;
    const fresh: FamilyHealth = { lastUpdated: this.#clock.now() };
    this.#families.set(family, fresh);
    return fresh;
  }
}
