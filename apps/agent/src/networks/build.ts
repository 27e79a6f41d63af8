import type { Clock } from "@fairlead/base";
import type { ClusterState } from "@fairlead/core";
import type { NetworksReport } from "@fairlead/networks";
import type { NodeEvents } from "../events/node-events.ts";
import type { Log } from "../log/log.ts";
import type { NetworkMetrics } from "../metrics/network-metrics.ts";
import type { KnownKeeper } from "./known-keeper.ts";
import { LiveNetworks } from "./live-networks.ts";
import { newsOf, writeNews } from "./news.ts";
import type { NetworksSetup } from "./setup.ts";

export interface LiveNetworksWorld {
  readonly clock: Clock;
  readonly log: Log;
  readonly events?: Pick<NodeEvents, "report"> | undefined;
}

/** The live networks with all that follows from their decisions beside the plan: log, Events, metrics, the file. */
export function liveNetworks(
  { clock, log, events }: LiveNetworksWorld,
  setup: NetworksSetup,
  state: ClusterState,
  metrics: NetworkMetrics | undefined,
  known: KnownKeeper,
): LiveNetworks {
  let last: NetworksReport | undefined;
  return new LiveNetworks({
    setup,
    state,
    clock,
    log,
    keep: (what) => known.keep(what),
    onDecided(decision, report) {
      metrics?.set(decision, report);
      writeNews(newsOf(last, report), log, (event) => void events?.report(event));
      last = report;
    },
  });
}
