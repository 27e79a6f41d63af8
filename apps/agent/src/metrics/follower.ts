import type { Clock } from "@fairlead/base";
import type { ClusterView, DirtyServices, IPFamily, ModeFacts, Planner } from "@fairlead/core";
import type { Gauge } from "prom-client";
import type { FamilyRun, SyncFollower } from "../sync/follower.ts";
import type { AgentMetrics } from "./agent-metrics.ts";
import type { FailureMetrics } from "./failure-metrics.ts";
import type { IptablesMetrics } from "./iptables-metrics.ts";
import type { SyncMetrics } from "./sync-metrics.ts";

export interface MetricsFollowerParts {
  readonly sync: SyncMetrics;
  /** Of modes that write iptables rules. */
  readonly iptables?: IptablesMetrics;
  /** Of the others. */
  readonly failures?: FailureMetrics;
  readonly agent: AgentMetrics;
  /** What the mode programs alongside iptables rules; absent: nothing. */
  readonly objects?: Gauge<"ip_family" | "kind"> | undefined;
  readonly mode: Pick<ModeFacts, "objects">;
  readonly planner: Pick<Planner, "counts">;
  readonly state: ClusterView;
  readonly clock: Clock;
}

/** Feeds the metrics that follow each sync. */
export function metricsFollower(parts: MetricsFollowerParts): SyncFollower {
  const triggers = new Map<IPFamily, number[]>();
  return {
    planned(step, dirty) {
      for (const family of step.changes.keys()) collectTriggers(triggers, family, dirty, parts.state);
    },
    ran(run) {
      const { outcome, family } = run;
      if (outcome.kind === "synced") {
        synced(parts, run, outcome);
        for (const time of triggers.get(family) ?? []) {
          // The time is another machine's, and this one's clock may be set back: a sum of durations does not shrink.
          const milliseconds = Math.max(0, parts.clock.now() - time);
          parts.sync.programming.observe({ ip_family: family }, milliseconds / 1000);
        }
        triggers.delete(family);
      } else if (outcome.kind === "failed") {
        failed(parts, run, outcome);
      }
      followPlan(parts, family);
    },
    unmaintained(family) {
      parts.failures?.cleanup.inc({ ip_family: family });
    },
  };
}

type Outcome<K extends FamilyRun["outcome"]["kind"]> = Extract<FamilyRun["outcome"], { kind: K }>;

function synced(
  { sync, iptables, objects, mode, clock, agent }: MetricsFollowerParts,
  { family }: FamilyRun,
  outcome: Outcome<"synced">,
) {
  const labels = { ip_family: family };
  observe(sync, family, outcome.report.kind, outcome.milliseconds);
  sync.lastTimestamp.set(labels, clock.now() / 1000);
  const { kind, refused = [] } = outcome.report;
  if (kind === "full") agent.refusedObjects.set(labels, refused.length);
  else if (refused.length > 0) agent.refusedObjects.inc(labels, refused.length);
  for (const [kind, { total, written }] of Object.entries(outcome.report.objects)) {
    if (mode.objects.rules.includes(kind)) {
      iptables?.rulesTotal.set({ table: kind, ...labels }, total);
      iptables?.rulesLast.set({ table: kind, ...labels }, written);
    } else if (mode.objects.own?.kinds.includes(kind)) objects?.set({ kind, ...labels }, total);
  }
}

function failed({ sync, iptables, failures }: MetricsFollowerParts, { family }: FamilyRun, outcome: Outcome<"failed">) {
  observe(sync, family, outcome.sync, outcome.milliseconds);
  failures?.sync.inc({ ip_family: family });
  iptables?.restoreFailures.inc({ ip_family: family });
  if (outcome.sync === "partial") iptables?.partialRestoreFailures.inc({ ip_family: family });
}

function observe(sync: SyncMetrics, family: IPFamily, kind: "full" | "partial", milliseconds: number): void {
  const labels = { ip_family: family };
  sync.duration.observe(labels, milliseconds / 1000);
  (kind === "full" ? sync.fullDuration : sync.partialDuration).observe(labels, milliseconds / 1000);
}

function followPlan({ sync, agent, planner }: MetricsFollowerParts, family: IPFamily): void {
  const labels = { ip_family: family };
  const counts = planner.counts(family);
  for (const [ownership, services] of Object.entries(counts.services)) {
    agent.services.set({ ...labels, ownership }, services);
  }
  agent.endpointsExcluded.set(labels, counts.endpointsExcluded);
  for (const [policy, groups] of Object.entries(counts.noLocalEndpoints)) {
    sync.noLocalEndpoints.set({ ...labels, traffic_policy: policy }, groups);
  }
}

/** A service's times count in the families that it has slices of. */
function collectTriggers(
  triggers: Map<IPFamily, number[]>,
  family: IPFamily,
  { triggerTimes }: DirtyServices,
  state: ClusterView,
): void {
  for (const [service, times] of triggerTimes) {
    if (!state.slices(service).some((slice) => slice.family === family)) continue;
    const waiting = triggers.get(family);
    if (waiting === undefined) triggers.set(family, [...times]);
    else waiting.push(...times);
  }
}
