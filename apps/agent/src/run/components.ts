import { ClusterState, Planner } from "@fairlead/core";
import { createEndpointFilter } from "@fairlead/endpoint-filter";
import { NodeInputs } from "@fairlead/intake";
import { connectionReader } from "../connections/reader.ts";
import { ProxyHealth } from "../health/proxy-health.ts";
import { ConnectionLimit } from "../http/connection-limit.ts";
import { createMetrics } from "../metrics/metrics.ts";
import { addRelayMetrics } from "../metrics/relay-metrics.ts";
import { liveNetworks } from "../networks/build.ts";
import { KnownKeeper } from "../networks/known-keeper.ts";
import { ProblemLog } from "../objects/problem-log.ts";
import { MemoryKeeper } from "../ownership/keeper.ts";
import { stateFile } from "../ownership/state-file.ts";
import { allSynced } from "../sync/all-synced.ts";
import type { AgentParts } from "./parts.ts";
import { serviceHealthServers } from "./service-health.ts";

export type Components = ReturnType<typeof createComponents>;

/** What an agent is made of, but for what drives it. */
export function createComponents(parts: AgentParts) {
  const { config, clock, log, relaying, kernel, mode, shadow } = parts;
  const families = [...parts.backends.keys()];
  const state = new ClusterState({ ignoreTriggersBefore: clock.now() });
  const filter = createEndpointFilter(parts.filter);
  const inputs = new NodeInputs({ config, nodeName: parts.nodeName, families, filter, mode });
  const planner = new Planner(inputs.options());
  const metrics = createMetrics(state, {
    mode,
    nfacct: kernel.nfacct,
    serviceProxyName: config.serviceProxyName,
    learns: parts.networks !== undefined,
    connections: serviceConnections(parts, planner),
    resetsTCP: config.resetStaleTCP && !mode.endsConnections,
    addMore: (make) => {
      parts.addMetrics?.(make);
      return relaying ? addRelayMetrics(make, relaying.traffic, config) : shadow?.addMetrics(make);
    },
  });
  const health = new ProxyHealth(2 * config[config.mode].syncPeriodMs, () => clock.now());
  const known = new KnownKeeper(stateFile(config.stateDir, "networks"), log);
  const connectionLimit = new ConnectionLimit(parts.maxClients);
  return {
    families,
    state,
    inputs,
    planner,
    metrics,
    problems: new ProblemLog(log, ({ kind }) => metrics.agent.invalidObjects.inc({ kind })),
    health,
    keeper: new MemoryKeeper(parts.memory, {
      path: stateFile(config.stateDir, "memory"),
      scope: parts.filter,
      clock,
      log,
    }),
    known,
    networks: parts.networks && liveNetworks(parts, parts.networks, state, metrics.networks, known),
    connectionLimit,
    serviceHealth: new Map(
      families.map((family) => [family, serviceHealthServers(parts, family, health, connectionLimit)]),
    ),
    allSynced: allSynced(families),
  };
}

/** Undefined: nobody wants to know, or there is nothing to read them from. */
function serviceConnections({ config, kernel, relaying, clock, log }: AgentParts, planner: Planner) {
  const { serviceMetrics: settings } = config;
  const { tracking } = kernel;
  if (settings === undefined || tracking === undefined) return undefined;
  return connectionReader({ settings, planner, tracking, relays: relaying?.lookup && relaying.traffic, clock, log });
}
