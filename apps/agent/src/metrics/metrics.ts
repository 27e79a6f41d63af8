import { INVALID_DROPPED_COUNTER, LOCALHOST_ACCEPTED_COUNTER } from "@fairlead/backend-iptables";
import { KUBE_PROXY_RELEASE } from "@fairlead/config";
import type { ClusterState } from "@fairlead/core";
import type { Nfacct } from "@fairlead/kernel";
import { version } from "../start/version.ts";
import { agentMetrics } from "./agent-metrics.ts";
import { addBuildMetrics } from "./build-metrics.ts";
import { copyChangeCounts } from "./change-counts.ts";
import { iptablesMetrics } from "./iptables-metrics.ts";
import { addPacketCounters } from "./packet-counters.ts";
import { addProcessMetrics, type MetricFactory, metricFactory } from "./registry.ts";
import { restClientMetrics } from "./rest-client-metrics.ts";
import { syncMetrics } from "./sync-metrics.ts";

/**
 * All metrics of an agent in one registry of its own.
 *
 * @param nfacct absent: the mode's rules count no packets
 * @param addMore adds those of the mode; what it gives is called before they are read
 */
export function createMetrics(
  state: ClusterState,
  nfacct: Nfacct | undefined,
  addMore?: (make: MetricFactory) => () => void,
) {
  const make = metricFactory();
  const sync = syncMetrics(make);
  const iptables = iptablesMetrics(make);
  const agent = agentMetrics(make);
  const counters = {
    invalidDropped: INVALID_DROPPED_COUNTER,
    localhostAccepted: LOCALHOST_ACCEPTED_COUNTER,
  };
  addPacketCounters(make.registry, counters, async (name) => (await nfacct?.read(name))?.packets);
  addProcessMetrics(make.registry);
  addBuildMetrics(make, version, KUBE_PROXY_RELEASE);
  const refresh = addMore?.(make);
  return {
    sync,
    iptables,
    agent,
    requests: restClientMetrics(make),
    async text() {
      copyChangeCounts(sync, state);
      refresh?.();
      return { text: await make.registry.metrics(), contentType: make.registry.contentType };
    },
  };
}
