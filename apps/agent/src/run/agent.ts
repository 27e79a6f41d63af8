/** Puts an agent together from its parts, with what follows each sync. */

import { errorChainText, nextTurn } from "@fairlead/base";
import { ClusterState, type IPFamily, Planner, type PlannerOptions, type ServiceKey } from "@fairlead/core";
import { createEndpointFilter, OwnershipDelay } from "@fairlead/endpoint-filter";
import { type LiveNetworks, NodeInputs } from "@fairlead/intake";
import { connectionReader } from "../connections.ts";
import { conntrackFollower } from "../conntrack.ts";
import { eventFollower, healthCheckNotListening, problemEvents } from "../events.ts";
import { ConnectionLimit, listen } from "../http/listen.ts";
import type { Kernel } from "../kernel.ts";
import { createMetrics, type Metrics } from "../metrics/metrics.ts";
import { addRelayMetrics } from "../metrics/part-metrics.ts";
import { metricsFollower } from "../metrics/sync-metrics.ts";
import { leftoversFollower } from "../modes/leftovers.ts";
import { foreignAlarm, KnownKeeper, liveNetworks, networksFollower } from "../networks.ts";
import { MemoryKeeper, ownershipFollower, stateFile } from "../ownership.ts";
import { ProblemLog, problemFollower } from "../problems.ts";
import { healthFollower, ProxyHealth } from "../proxy-health.ts";
import { ServiceHealthServers, serviceHealthFollower } from "../service-health.ts";
import { FamilySync } from "../sync/family-sync.ts";
import { type SyncFollower, syncLog } from "../sync/follower.ts";
import { SyncLoop } from "../sync/sync-loop.ts";
import { Syncer } from "../sync/syncer.ts";
import type { Agent, AgentParts } from "./parts.ts";

/**
 * Puts the agent together, in the order in which a change passes: objects and inputs → planner → syncer, which the loop
 * paces and the followers hear of. Nothing runs yet: `run-agent.ts` starts it.
 */
export function createAgent(parts: AgentParts): Agent {
  const { config, nodeName, mode, clock, log } = parts;
  const families = [...parts.backends.keys()];
  const state = new ClusterState({ ignoreTriggersBefore: clock.now() });
  const inputs = new NodeInputs({ config, nodeName, families, filter: createEndpointFilter(parts.filter), mode });
  const planner = new Planner(inputs.options());
  const metrics = metricsOf(parts, state, planner);
  const health = new ProxyHealth(2 * config[config.mode].syncPeriodMs, clock);
  parts.progress?.follow((family) => health.progressed(family));
  const known = new KnownKeeper(stateFile(config.stateDir, "networks"), log);
  const memoryFile = stateFile(config.stateDir, "memory");
  const connectionLimit = new ConnectionLimit(parts.maxClients);
  const serviceHealth = new Map(
    families.map((family) => [family, serviceHealthServers(parts, family, health, connectionLimit)]),
  );
  const followed = {
    families,
    state,
    inputs,
    networks: parts.networks && liveNetworks(parts, parts.networks, state, metrics.networks, known),
    delay: new OwnershipDelay(ownershipDelayMs(parts), clock),
    planner,
    problems: new ProblemLog(
      log,
      ({ kind }) => metrics.agent.invalidObjects.inc({ kind }),
      parts.events && problemEvents(parts.events),
    ),
    metrics,
    health,
    serviceHealth,
    connectionLimit,
    keeper: new MemoryKeeper(parts.memory, { path: memoryFile, scope: parts.filter, clock, log }),
    known,
  };
  const syncer = createSyncer(parts, followed);
  return { ...followed, syncer, loop: createLoop(parts, syncer) };
}

/** A full sync without a reason comes once an hour, as upstream. */
const FULL_SYNC_MS = 3_600_000;

/** Milliseconds of work before the event loop gets its turn. */
const SLICE_MS = 10;

function createSyncer(parts: AgentParts, agent: Omit<Agent, "syncer" | "loop">): Syncer {
  const { backends, familiesAtOnce, config, clock, log, random } = parts;
  const { families, state, planner, inputs, networks, delay, keeper, health } = agent;
  const { syncPeriodMs } = config[config.mode];
  const backoff = { first: Math.min(1_000, syncPeriodMs), most: syncPeriodMs };
  return new Syncer({
    planner,
    state,
    memory: () => keeper.memory,
    families: Array.from(backends, ([family, one]) => new FamilySync(family, one, backoff, clock, random)),
    familiesAtOnce,
    options: () => delayed(inputs.options(), delay),
    concerned: networks && (() => concerned(networks, delay)),
    due: () => delay.due(),
    slicing: {
      clock,
      budget: SLICE_MS,
      turn() {
        for (const family of families) health.progressed(family);
        return nextTurn();
      },
    },
    followers: followersOf(parts, agent),
    log,
  });
}

/** Milliseconds; without sources and rules, and for a second instance, services change hands as ever: at once. */
function ownershipDelayMs({ config, networks }: Pick<AgentParts, "config" | "networks">): number {
  return networks === undefined || config.serviceProxyName !== "" ? 0 : 10_000;
}

function delayed(options: PlannerOptions, delay: OwnershipDelay): PlannerOptions {
  const { filter } = options;
  return filter === undefined ? options : { ...options, filter: delay.around(filter) };
}

/** What CIDRs decide otherwise than before changes hands at once. */
function concerned(networks: LiveNetworks, delay: OwnershipDelay): ReadonlySet<ServiceKey> {
  const services = networks.takeConcerned();
  delay.exempt(services);
  return services;
}

function createLoop({ config, clock }: AgentParts, syncer: Syncer): SyncLoop {
  const { minSyncPeriodMs: minInterval, syncPeriodMs: checkInterval } = config[config.mode];
  return new SyncLoop({ minInterval, checkInterval, fullInterval: FULL_SYNC_MS }, syncer, clock);
}

/** The agent but for what syncs run in. */
type Followed = Omit<Agent, "syncer" | "loop">;

function followersOf(parts: AgentParts, made: Followed): readonly SyncFollower[] {
  const { log, clock, mode, kernel } = parts;
  const { families, metrics, planner, state, networks } = made;
  return [
    healthFollower(made.health, families),
    ownershipFollower(made.keeper, made.delay, log, metrics.agent),
    problemFollower(made.problems),
    syncLog(log),
    metricsFollower({ ...metrics, mode, planner, state, clock }),
    ...("iptables" in kernel ? alongsideRules(parts, made, kernel) : []),
    ...("probed" in kernel ? [serviceHealthFollower(made.serviceHealth)] : []),
    ...(parts.events === undefined ? [] : [eventFollower(parts.events)]),
    ...(parts.followers ?? []),
    ...(networks === undefined ? [] : [networksFollower(networks), alarmOf(parts, made)]),
  ];
}

function alarmOf({ config, log, events }: AgentParts, { families, planner, metrics }: Followed): SyncFollower {
  const { maxForeignPercent } = config.multiCNI.cidrChanges;
  const services = (family: IPFamily) => planner.counts(family).services;
  return foreignAlarm({ maxForeignPercent, families, services, metrics: metrics.networks, log, events });
}

/** What a node needs alongside its rules: health checks, connection tracking, and what other modes left. */
function alongsideRules(parts: AgentParts, made: Followed, kernel: Kernel): readonly SyncFollower[] {
  const { config, log, clock, mode, relaying, removals } = parts;
  const { families, planner, inputs } = made;
  const metrics = made.metrics.conntrack;
  const isForeign = (address: string) => inputs.options().filter?.isForeign?.(address) ?? false;
  const resets = config.resetStaleTCP && !mode.endsConnections ? { isForeign } : undefined;
  const lookup = (family: IPFamily) => relaying?.lookup?.(planner.lookup(family)) ?? planner.lookup(family);
  return [
    serviceHealthFollower(made.serviceHealth),
    conntrackFollower({
      families,
      conntrack: kernel.conntrack,
      lookup,
      nodeAddresses: () => inputs.addresses,
      resets,
      metrics,
      clock,
      log,
    }),
    leftoversFollower({ kernel, mode, removals, families, log }),
  ];
}

function metricsOf(parts: AgentParts, state: ClusterState, planner: Planner): Metrics {
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

/** The health-check node ports of one family; what becomes of each is logged, and what fails is an Event as well. */
function serviceHealthServers(
  { log, events, clock, random }: Pick<AgentParts, "log" | "events" | "clock" | "random">,
  family: IPFamily,
  health: ProxyHealth,
  limit: ConnectionLimit,
): ServiceHealthServers {
  return new ServiceHealthServers({
    family,
    listen: (app, at, ipv6Only) => listen(app, at, ipv6Only, limit),
    clock,
    random,
    proxyHealthy: () => health.report().healthy,
    onOpened({ service }, { host, port }, wasRefused) {
      const fields = { service, port, address: host, ipFamily: family };
      if (wasRefused) log.info("Health-check node port opened after earlier failures", fields);
      else log.verbose(2, "Health-check node port opened", fields);
    },
    onRefused(check, at, error) {
      log.error("Cannot open health-check node port on this address; traffic is not affected, retrying", {
        service: check.service,
        port: check.port,
        address: at.host,
        ipFamily: family,
        error: errorChainText(error),
      });
      void events?.report(healthCheckNotListening(check, at, error));
    },
  });
}
