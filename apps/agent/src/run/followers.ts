import type { IPFamily } from "@fairlead/core";
import { conntrackFollower } from "../conntrack/follower.ts";
import { annotationFollower } from "../events/annotation-follower.ts";
import { eventFollower } from "../events/follower.ts";
import { healthFollower } from "../health/follower.ts";
import { serviceHealthFollower } from "../health/service-follower.ts";
import type { Kernel } from "../host/kernel.ts";
import { metricsFollower } from "../metrics/follower.ts";
import { leftoversFollower } from "../modes/leftovers.ts";
import { networksFollower } from "../networks/follower.ts";
import { foreignAlarm } from "../networks/foreign-alarm.ts";
import { problemFollower } from "../objects/problem-follower.ts";
import { ownershipFollower } from "../ownership/follower.ts";
import type { SyncFollower } from "../sync/follower.ts";
import { syncLog } from "../sync/sync-log.ts";
import type { Agent, AgentParts } from "./parts.ts";

/** The agent but for what syncs run in. */
type Followed = Omit<Agent, "syncer" | "loop">;

/** What follows from each sync, in this order. */
export function followersOf(parts: AgentParts, made: Followed): readonly SyncFollower[] {
  const { log, clock, mode, kernel } = parts;
  const { families, metrics, planner, state, networks } = made;
  return [
    healthFollower(made.health, families),
    ownershipFollower(made.keeper, made.delay, log, metrics.agent),
    problemFollower(made.problems),
    syncLog(log),
    metricsFollower({ ...metrics, mode, planner, state, clock }),
    ...("iptables" in kernel ? besideRules(parts, made, kernel) : []),
    ...(parts.events === undefined ? [] : [eventFollower(parts.events), annotationFollower(parts.events)]),
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
function besideRules(parts: AgentParts, made: Followed, kernel: Kernel): readonly SyncFollower[] {
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
