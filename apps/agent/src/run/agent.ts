import { nextTurn } from "@fairlead/base";
import { ClusterState, Planner, type PlannerOptions, type ServiceKey } from "@fairlead/core";
import { createEndpointFilter, OwnershipDelay } from "@fairlead/endpoint-filter";
import { type LiveNetworks, NodeInputs } from "@fairlead/intake";
import { ProxyHealth } from "../health/proxy-health.ts";
import { ConnectionLimit } from "../http/connection-limit.ts";
import { liveNetworks } from "../networks/build.ts";
import { KnownKeeper } from "../networks/known-keeper.ts";
import { ProblemLog } from "../objects/problem-log.ts";
import { MemoryKeeper } from "../ownership/keeper.ts";
import { stateFile } from "../ownership/state-file.ts";
import { FamilySync } from "../sync/family-sync.ts";
import { SyncLoop } from "../sync/sync-loop.ts";
import { Syncer } from "../sync/syncer.ts";
import { followersOf } from "./followers.ts";
import { metricsOf } from "./metrics.ts";
import type { Agent, AgentParts } from "./parts.ts";
import { serviceHealthServers } from "./service-health.ts";

/** A full sync without a reason comes once an hour, as upstream. */
const FULL_SYNC_MS = 3_600_000;

/** Milliseconds of work before the event loop gets its turn. */
const SLICE_MS = 10;

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
    problems: new ProblemLog(log, ({ kind }) => metrics.agent.invalidObjects.inc({ kind })),
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
