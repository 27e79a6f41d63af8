import type { ClusterState, Planner } from "@fairlead/core";
import { connectionReader } from "../connections/reader.ts";
import { createMetrics, type Metrics } from "../metrics/metrics.ts";
import { addRelayMetrics } from "../metrics/relay-metrics.ts";
import type { AgentParts } from "./parts.ts";

/** The metrics that this agent has, by its mode and configuration. */
export function metricsOf(parts: AgentParts, state: ClusterState, planner: Planner): Metrics {
  const { config, kernel, mode, relaying } = parts;
  const metrics = createMetrics(state, {
    mode,
    nfacct: kernel.nfacct,
    serviceProxyName: config.serviceProxyName,
    learns: parts.networks !== undefined,
    connections: serviceConnections(parts, planner),
    resetsTCP: config.resetStaleTCP && !mode.endsConnections,
    addMore: (make) => {
      parts.addMetrics?.(make);
      return relaying && addRelayMetrics(make, relaying.traffic, config);
    },
  });
  metrics.agent.modeFallback.set(parts.fallback === undefined ? 0 : 1);
  return metrics;
}

/** Undefined: they are not configured, or there is nothing to read them from. */
function serviceConnections({ config, kernel, relaying, clock, log }: AgentParts, planner: Planner) {
  const { serviceMetrics: settings } = config;
  const { tracking } = kernel;
  if (settings === undefined || tracking === undefined) return undefined;
  return connectionReader({ settings, planner, tracking, relays: relaying?.lookup && relaying.traffic, clock, log });
}
