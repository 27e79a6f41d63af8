import type { ClusterState } from "@fairlead/core";
import type { Counter, Gauge } from "prom-client";
import type { SyncMetrics } from "./sync-metrics.ts";

/** Copies the counts of object changes, which core keeps, into the metrics. */
export function copyChangeCounts(metrics: SyncMetrics, state: ClusterState): void {
  const { serviceChanges, endpointChanges } = state;
  set(metrics.serviceChangesTotal, metrics.serviceChangesPending, serviceChanges);
  set(metrics.endpointChangesTotal, metrics.endpointChangesPending, endpointChanges);
}

function set(total: Counter<never>, pending: Gauge<never>, counts: { total: number; pending: number }): void {
  total.reset();
  total.inc(counts.total);
  pending.set(counts.pending);
}
