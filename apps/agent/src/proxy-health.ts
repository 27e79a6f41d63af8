/** Whether the proxy works and this node should get traffic. */

import type { Clock } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { type App, goTime, JSON_TYPE, routes } from "./http/app.ts";
import type { SyncFollower } from "./sync/follower.ts";

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

interface HealthReport {
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

interface HealthSources {
  report(): HealthReport;
  /** False while the own Node is being deleted or about to be scaled down, or not known yet. */
  nodeEligible(): boolean;
  /** Each answer with its status code. */
  answered(endpoint: "healthz" | "livez", code: 200 | 503): void;
}

/**
 * /healthz (this node should get traffic) and /livez (the proxy works) of the health port, in upstream's words. Unlike
 * upstream's, /healthz is 503 until each family's first rules are in place, with a word that says so.
 */
export function healthApp(sources: HealthSources): App {
  return routes({
    "/healthz": () => {
      const nodeEligible = sources.nodeEligible();
      const report = sources.report();
      const { healthy, rulesInPlace } = report;
      const status = healthy && nodeEligible && rulesInPlace ? 200 : 503;
      sources.answered("healthz", status);
      const own = { nodeEligible, ...(rulesInPlace ? {} : { rulesInPlace }) };
      return { status, headers: JSON_TYPE, body: body(report, status, own) };
    },
    "/livez": () => {
      const report = sources.report();
      const status = report.healthy ? 200 : 503;
      sources.answered("livez", status);
      return { status, headers: JSON_TYPE, body: body(report, status, {}) };
    },
  });
}

/** Reports to the proxy's health which changes have reached the kernel. */
export function healthFollower(
  health: ProxyHealth,
  families: readonly Parameters<ProxyHealth["taken"]>[0][],
): SyncFollower {
  return {
    taken() {
      for (const family of families) health.taken(family);
    },
    ran({ family, outcome }) {
      if (outcome.kind === "synced" || outcome.kind === "unchanged") health.updated(family);
      if (outcome.kind === "failed") health.failed(family);
    },
  };
}

/** While healthy, lastUpdated is the current time: readers of old take it for a sign of life. */
function body(report: HealthReport, code: 200 | 503, own: { nodeEligible?: boolean; rulesInPlace?: boolean }): string {
  const status = Object.entries(report.status)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([family, one]) => [family, { lastUpdated: goTime(one.lastUpdated), healthy: one.healthy }] as const);
  return JSON.stringify({
    lastUpdated: goTime(code === 200 ? report.currentTime : report.lastUpdated),
    currentTime: goTime(report.currentTime),
    ...own,
    healthy: report.healthy,
    ...(status.length === 0 ? {} : { status: Object.fromEntries(status) }),
  });
}
