import { type Clock, errorChainText } from "@fairlead/base";
import type { FrontendLookup, IPFamily, Protocol } from "@fairlead/core";
import { CommandError, type Conntrack } from "@fairlead/kernel";
import type { Log } from "../log/log.ts";
import type { ConntrackMetrics } from "../metrics/conntrack-metrics.ts";
import type { SyncFollower } from "../sync/follower.ts";
import { cleanConntrack } from "./clean.ts";
import { CleaningQueue, type Resets } from "./queue.ts";

export interface ConntrackFollowerParts {
  readonly families: readonly IPFamily[];
  readonly conntrack: Conntrack;
  readonly lookup: (family: IPFamily) => FrontendLookup;
  /** The node's own addresses, as far as they are known now. Default: they are not. */
  readonly nodeAddresses?: () => readonly string[];
  /** Absent: TCP is left alone. */
  readonly resets?: Resets | undefined;
  readonly metrics: ConntrackMetrics;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Cleans conntrack after syncs that the kernel took, where UDP or SCTP was concerned, and where TCP is to be reset.
 * What cannot be cleaned is left to time out: rules are more important than that, so it never makes a sync fail.
 */
export function conntrackFollower(parts: ConntrackFollowerParts): SyncFollower {
  const queues = new Map(parts.families.map((family) => [family, new CleaningQueue(family, parts.resets)]));
  let unusable = false;

  async function clean(family: IPFamily, queue: CleaningQueue): Promise<void> {
    const needs = queue.take();
    if (needs === undefined || unusable) return;
    const start = parts.clock.monotonic();
    try {
      told(family, await cleanConntrack(parts.conntrack, parts.lookup(family), needs, parts.nodeAddresses?.()));
    } catch (error) {
      unusable = error instanceof CommandError && error.reason === "not-found";
      report(family, error);
    }
    parts.metrics.duration.observe({ ip_family: family }, (parts.clock.monotonic() - start) / 1000);
  }

  function told(family: IPFamily, deleted: ReadonlyMap<Protocol, number>): void {
    const entries = [...deleted.values()].reduce((sum, count) => sum + count, 0);
    parts.metrics.deleted.inc({ ip_family: family }, entries);
    parts.metrics.deletedTCP?.inc({ ip_family: family }, deleted.get("TCP") ?? 0);
    if (entries > 0) parts.log.verbose(2, "Deleted stale conntrack entries", { ipFamily: family, entries });
  }

  function report(family: IPFamily, error: unknown): void {
    const message = "Failed to delete stale conntrack entries; UDP clients stay on removed endpoints until they pause";
    const hint = unusable ? { hint: "install conntrack (apt-get install conntrack)" } : {};
    parts.log.warn(message, { ipFamily: family, error: errorChainText(error), ...hint });
  }

  return {
    planned({ released }) {
      for (const queue of queues.values()) queue.released(released);
    },
    async ran({ family, change, outcome }) {
      const queue = queues.get(family);
      queue?.changed(change);
      if (queue !== undefined && outcome.kind === "synced") await clean(family, queue);
    },
  };
}
