import { errorChainText, nextTurn } from "@fairlead/base";
import { ClusterState, type IPFamily, Planner } from "@fairlead/core";
import { createEndpointFilter } from "@fairlead/endpoint-filter";
import { NodeInputs } from "@fairlead/intake";
import { conntrackFollower } from "../conntrack/follower.ts";
import { eventFollower } from "../events/follower.ts";
import { healthCheckNotListening } from "../events/port-events.ts";
import { healthFollower } from "../health/follower.ts";
import { ProxyHealth } from "../health/proxy-health.ts";
import { serviceHealthFollower } from "../health/service-follower.ts";
import { ServiceHealthServers } from "../health/service-health.ts";
import type { Kernel } from "../host/kernel.ts";
import { Admission } from "../http/admission.ts";
import { listen } from "../http/listen.ts";
import { metricsFollower } from "../metrics/follower.ts";
import { createMetrics } from "../metrics/metrics.ts";
import { addRelayMetrics } from "../metrics/relay-metrics.ts";
import { leftoversFollower } from "../modes/leftovers.ts";
import { liveNetworks } from "../networks/build.ts";
import { KnownKeeper } from "../networks/known-keeper.ts";
import { networksFollower } from "../networks/live-networks.ts";
import { knownPath } from "../networks/setup.ts";
import { problemFollower } from "../objects/problem-follower.ts";
import { ProblemLog } from "../objects/problem-log.ts";
import { ownershipFollower } from "../ownership/follower.ts";
import { MemoryKeeper } from "../ownership/keeper.ts";
import { memoryPath } from "../ownership/memory-file.ts";
import { allSynced } from "../sync/all-synced.ts";
import { FamilySync } from "../sync/family-sync.ts";
import { syncLog } from "../sync/sync-log.ts";
import { SyncLoop } from "../sync/sync-loop.ts";
import { Syncer } from "../sync/syncer.ts";
import type { AgentParts } from "./parts.ts";

/** A full sync without a reason comes once an hour, as upstream. */
const FULL_SYNC_MS = 3_600_000;

/** Milliseconds of work before the event loop gets its turn. */
const SLICE_MS = 10;

export type Assembled = ReturnType<typeof assemble>;

/** Puts the agent together; nothing runs yet. */
export function assemble(parts: AgentParts) {
  const { config, clock, log, backends } = parts;
  const families = [...backends.keys()];
  const state = new ClusterState({ ignoreTriggersBefore: clock.now() });
  const filter = createEndpointFilter(parts.filter);
  const inputs = new NodeInputs({
    config,
    nodeName: parts.nodeName,
    families,
    filter,
    mode: parts.mode,
  });
  const planner = new Planner(inputs.options());
  const { relaying, kernel } = parts;
  const metrics = createMetrics(state, {
    mode: parts.mode,
    nfacct: kernel.nfacct,
    learns: parts.networks !== undefined,
    addMore: relaying && ((make) => addRelayMetrics(make, relaying.traffic, config)),
  });
  metrics.agent.modeFallback.set(parts.fallback === undefined ? 0 : 1);
  const problems = new ProblemLog(log, ({ kind }) => metrics.agent.invalidObjects.inc({ kind }));
  const health = new ProxyHealth(2 * config.syncPeriodMs, () => clock.now());
  parts.progress?.follow((family) => health.progressed(family));
  const keeper = new MemoryKeeper(parts.memory, {
    path: memoryPath(config.stateDir),
    scope: parts.filter,
    clock,
    log,
  });
  const known = new KnownKeeper(knownPath(config.stateDir), log);
  const networks = parts.networks && liveNetworks(parts, parts.networks, state, metrics.networks, known);
  const admission = new Admission(undefined, parts.maxClients);
  const serviceHealth = new Map(
    families.map((family) => [family, serviceHealthServers(parts, family, health, admission)]),
  );
  const lookup = (family: IPFamily) => relaying?.lookup(planner.lookup(family)) ?? planner.lookup(family);
  const beside = (whole: Kernel) => [
    serviceHealthFollower(serviceHealth),
    conntrackFollower({ families, conntrack: whole.conntrack, lookup, metrics: metrics.conntrack, clock, log }),
    leftoversFollower({ kernel: whole, mode: parts.mode, removals: parts.removals, families, log }),
  ];
  const synced = allSynced(families);
  const syncer = new Syncer({
    planner,
    state,
    memory: () => keeper.memory,
    families: familySyncs(parts),
    familiesAtOnce: parts.familiesAtOnce,
    options: () => inputs.options(),
    concerned: networks && (() => networks.takeConcerned()),
    slicing: {
      clock,
      budget: SLICE_MS,
      turn() {
        for (const family of families) health.progressed(family);
        return nextTurn();
      },
    },
    followers: [
      healthFollower(health, families),
      ownershipFollower(keeper, log, metrics.agent),
      problemFollower(problems),
      syncLog(log),
      metricsFollower({ ...metrics, mode: parts.mode, planner, state, clock }),
      ...("iptables" in kernel ? beside(kernel) : []),
      ...(parts.events === undefined ? [] : [eventFollower(parts.events)]),
      ...(parts.followers ?? []),
      ...(networks === undefined ? [] : [networksFollower(networks)]),
      synced.follower,
    ],
    log,
  });
  const { minSyncPeriodMs: minInterval, syncPeriodMs: checkInterval } = config;
  const loop = new SyncLoop({ minInterval, checkInterval, fullInterval: FULL_SYNC_MS }, syncer, clock);
  return {
    families,
    state,
    inputs,
    planner,
    metrics,
    problems,
    health,
    keeper,
    networks,
    known,
    admission,
    serviceHealth,
    syncer,
    loop,
    allSynced: synced,
  };
}

function familySyncs({ backends, config, clock, random }: AgentParts): readonly FamilySync[] {
  const backoff = { first: Math.min(1_000, config.syncPeriodMs), most: config.syncPeriodMs };
  return Array.from(backends, ([family, backend]) => new FamilySync(family, backend, backoff, clock, random));
}

function serviceHealthServers(
  { log, events, clock, random }: AgentParts,
  family: IPFamily,
  health: ProxyHealth,
  admission: Admission,
): ServiceHealthServers {
  return new ServiceHealthServers({
    family,
    listen: (app, at, ipv6Only) => listen(app, at, ipv6Only, admission),
    clock,
    random,
    proxyHealthy: () => health.report().healthy,
    onOpened({ service }, { host, port }, wasRefused) {
      const fields = { service, port, address: host, ipFamily: family };
      if (wasRefused) log.info("A health-check node port is open at last", fields);
      else log.verbose(2, "Health-check node port opened", fields);
    },
    onRefused(check, at, error) {
      log.error(
        "A health-check node port cannot be opened on this address, trying again; its others and all traffic are served",
        {
          service: check.service,
          port: check.port,
          address: at.host,
          ipFamily: family,
          error: errorChainText(error),
        },
      );
      void events?.report(healthCheckNotListening(check, at, error));
    },
  });
}
