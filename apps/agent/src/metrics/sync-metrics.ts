/** Metrics of syncs, failures and probes, and what feeds them after each sync. */

import type { Clock } from "@fairlead/base";
import type { ClusterView, DirtyServices, IPFamily, ModeFacts, Planner } from "@fairlead/core";
import type { Gauge } from "prom-client";
import type { FamilyRun, SyncFollower } from "../sync/follower.ts";
import { durationBuckets, type MetricFactory, metricFactory, programmingBuckets } from "./registry.ts";

/** Metrics of the sync loops, with upstream's names, labels and buckets. */
export function syncMetrics(make: MetricFactory) {
  const family = ["ip_family"] as const;
  const name = (rest: string) => `kubeproxy_sync_${rest}`;
  return {
    duration: make.histogram(
      name("proxy_rules_duration_seconds"),
      "Duration of a sync in seconds",
      durationBuckets,
      family,
    ),
    fullDuration: make.histogram(
      name("full_proxy_rules_duration_seconds"),
      "Duration of a full sync in seconds",
      durationBuckets,
      family,
    ),
    partialDuration: make.histogram(
      name("partial_proxy_rules_duration_seconds"),
      "Duration of a partial sync in seconds",
      durationBuckets,
      family,
    ),
    lastTimestamp: make.gauge(
      name("proxy_rules_last_timestamp_seconds"),
      "When the rules were last synced, seconds since the epoch",
      family,
    ),
    lastQueued: make.gauge(
      name("proxy_rules_last_queued_timestamp_seconds"),
      "When a sync was last requested, seconds since the epoch",
      family,
    ),
    endpointChangesPending: make.gauge(
      name("proxy_rules_endpoint_changes_pending"),
      "EndpointSlice changes that wait for a sync",
    ),
    endpointChangesTotal: make.counter(name("proxy_rules_endpoint_changes_total"), "EndpointSlice changes received"),
    serviceChangesPending: make.gauge(
      name("proxy_rules_service_changes_pending"),
      "Service changes that wait for a sync",
    ),
    serviceChangesTotal: make.counter(name("proxy_rules_service_changes_total"), "Service changes received"),
    noLocalEndpoints: make.gauge(
      name("proxy_rules_no_local_endpoints_total"),
      "Service ports (ipvs mode: Services) with a Local traffic policy whose endpoints are all on other nodes",
      ["traffic_policy", "ip_family"] as const,
    ),
    programming: make.histogram(
      "kubeproxy_network_programming_duration_seconds",
      "Seconds from a change of a Service or Pod to the end of the sync that applied it",
      programmingBuckets,
      family,
    ),
  };
}

export type SyncMetrics = ReturnType<typeof syncMetrics>;

type IptablesMetrics = ReturnType<typeof iptablesMetrics>;

type FailureMetrics = ReturnType<typeof failureMetrics>;

interface MetricsFollowerParts {
  readonly sync: SyncMetrics;
  /** Of modes that write iptables rules. */
  readonly iptables?: IptablesMetrics;
  readonly failures?: FailureMetrics;
  readonly agent: AgentMetrics;
  /** What the mode programs alongside iptables rules; absent: nothing. */
  readonly objects?: Gauge<"ip_family" | "kind"> | undefined;
  readonly mode: Pick<ModeFacts, "objects">;
  readonly planner: Pick<Planner, "counts">;
  readonly state: ClusterView;
  readonly clock: Clock;
}

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

/** Failures of a mode that writes no iptables rules, as upstream counts them in nftables mode. */
export function failureMetrics(make: MetricFactory, mode: string) {
  const family = ["ip_family"] as const;
  const name = (rest: string) => `kubeproxy_sync_proxy_rules_${mode}_${rest}_failures_total`;
  return {
    sync: make.counter(name("sync"), `Failed syncs in ${mode} mode`, family),
    cleanup: make.counter(name("cleanup"), "Failed removals of stale rules", family),
  };
}

/** Metrics of the modes that write iptables rules, with upstream's names, labels and buckets. */
export function iptablesMetrics(make: MetricFactory) {
  const family = ["ip_family"] as const;
  const table = ["table", "ip_family"] as const;
  const sync = (rest: string) => `kubeproxy_sync_proxy_rules_iptables_${rest}`;
  return {
    rulesTotal: make.gauge(sync("total"), "iptables rules that the plan needs", table),
    rulesLast: make.gauge(sync("last"), "iptables rules written by the last sync", table),
    restoreFailures: make.counter(sync("restore_failures_total"), "Failed syncs of iptables rules", family),
    partialRestoreFailures: make.counter(
      sync("partial_restore_failures_total"),
      "Failed partial syncs of iptables rules, each followed by a full one",
      family,
    ),
  };
}

/** Metrics of probes, and Fairlead's own. */
export function agentMetrics(make: MetricFactory) {
  return {
    healthz: make.counter("kubeproxy_proxy_healthz_total", "Responses of /healthz by status code", ["code"] as const),
    livez: make.counter("kubeproxy_proxy_livez_total", "Responses of /livez by status code", ["code"] as const),
    services: make.gauge("fairlead_services", "Services by owner: this proxy (ours, mixed) or another network", [
      "ip_family",
      "ownership",
    ] as const),
    endpointsExcluded: make.gauge(
      "fairlead_endpoints_excluded",
      "Distinct endpoint addresses of Services that lie in excluded CIDRs",
      ["ip_family"] as const,
    ),
    ownershipChanges: make.counter(
      "fairlead_ownership_changes_total",
      "Services that changed owner, by reason: annotation, rule, endpoints, or CIDRs of networks",
      ["from", "to", "reason"] as const,
    ),
    modeFallback: make.gauge(
      "fairlead_mode_fallback",
      "1 if ipvs mode is not available on this node and iptables mode serves instead",
      [] as const,
    ),
    refusedObjects: make.gauge(
      "fairlead_refused_objects",
      "Kernel objects that the kernel refused at the last full sync or since; all others are in place",
      ["ip_family"] as const,
    ),
    invalidObjects: make.counter(
      "fairlead_invalid_objects_total",
      "Invalid fields of objects, each counted once per object, field and value",
      ["kind"] as const,
    ),
  };
}

export type AgentMetrics = ReturnType<typeof agentMetrics>;

/**
 * Kubernetes' component SLIs (KEP-3466), as kube-proxy has them: the results of the metrics port's own /healthz, whose
 * one check is `ping`. In a registry of their own, which is served at /metrics/slis.
 */
export function sliMetrics(startedAt: number) {
  const make = metricFactory();
  const [name, type] = ["ping", "healthz"];
  const healthcheck = make.gauge("kubernetes_healthcheck", "Result of a health check: 1 if it succeeded", [
    "name",
    "type",
  ] as const);
  const total = make.counter("kubernetes_healthchecks_total", "Results of all health checks", [
    "name",
    "type",
    "status",
  ] as const);
  make.gauge("process_start_time_seconds", "Start time of the process, seconds since the epoch").set(startedAt / 1000);
  return {
    succeeded() {
      healthcheck.set({ name, type }, 1);
      total.inc({ name, type, status: "success" });
    },
    reset() {
      healthcheck.reset();
      total.reset();
    },
    text: async () => ({ text: await make.registry.metrics(), contentType: make.registry.contentType }),
  };
}

export type SliMetrics = ReturnType<typeof sliMetrics>;

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
