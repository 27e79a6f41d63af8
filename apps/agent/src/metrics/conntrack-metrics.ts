import { durationBuckets } from "./buckets.ts";
import type { MetricFactory } from "./registry.ts";

/** Metrics of the conntrack clean-up, with upstream's names, labels and buckets. */
export function conntrackMetrics(make: MetricFactory) {
  const family = ["ip_family"] as const;
  return {
    duration: make.histogram(
      "kubeproxy_conntrack_reconciler_sync_duration_seconds",
      "Duration of a look for stale conntrack entries in seconds",
      durationBuckets,
      family,
    ),
    deleted: make.counter(
      "kubeproxy_conntrack_reconciler_deleted_entries_total",
      "Stale conntrack entries deleted",
      family,
    ),
  };
}

export type ConntrackMetrics = ReturnType<typeof conntrackMetrics>;
