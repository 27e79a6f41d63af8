import { durationBuckets } from "./buckets.ts";
import type { MetricFactory } from "./registry.ts";

/**
 * Metrics of the conntrack clean-up, with upstream's names, labels and buckets.
 *
 * @param resetsTCP also what is deleted of TCP, which upstream leaves alone
 */
export function conntrackMetrics(make: MetricFactory, resetsTCP: boolean) {
  const family = ["ip_family"] as const;
  return {
    duration: make.histogram(
      "kubeproxy_conntrack_reconciler_sync_duration_seconds",
      "Duration of a search for stale conntrack entries in seconds",
      durationBuckets,
      family,
    ),
    deleted: make.counter(
      "kubeproxy_conntrack_reconciler_deleted_entries_total",
      "Stale conntrack entries deleted",
      family,
    ),
    /** Of them, those of TCP. */
    deletedTCP: resetsTCP
      ? make.counter(
          "fairlead_stale_tcp_entries_deleted_total",
          "Conntrack entries of TCP connections deleted because their endpoint is gone (--reset-stale-tcp)",
          family,
        )
      : undefined,
  };
}

export type ConntrackMetrics = ReturnType<typeof conntrackMetrics>;
