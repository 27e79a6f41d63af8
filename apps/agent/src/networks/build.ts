import type { Clock } from "@fairlead/base";
import type { ClusterState } from "@fairlead/core";
import type { NodeEvents } from "@fairlead/intake";
import { LiveNetworks, type NetworksSetup } from "@fairlead/intake";
import type { SourceReport } from "@fairlead/networks";
import type { Log } from "../log/log.ts";
import type { NetworkMetrics } from "../metrics/network-metrics.ts";
import type { KnownKeeper } from "./known-keeper.ts";
import { logEntriesOf, writeLogEntries } from "./log-entries.ts";

export interface LiveNetworksWorld {
  readonly clock: Clock;
  readonly log: Log;
  readonly events?: Pick<NodeEvents, "report"> | undefined;
}

/** The live networks with all that follows from their decisions alongside the plan: log, Events, metrics, the file. */
export function liveNetworks(
  { clock, log, events }: LiveNetworksWorld,
  setup: NetworksSetup,
  state: ClusterState,
  metrics: NetworkMetrics | undefined,
  known: KnownKeeper,
): LiveNetworks {
  let told: readonly SourceReport[] = [];
  return new LiveNetworks({
    setup,
    state,
    clock,
    onProblem: (source, object, problem) => {
      log.warn("Invalid network object; using its valid CIDRs", { source, object, problem });
    },
    keep: (read) => known.keep(read),
    onDecided({ conflicts }, update) {
      metrics?.set(conflicts, update);
      writeLogEntries(logEntriesOf(told, update), log, (event) => void events?.report(event));
      told = update.sources;
    },
  });
}
