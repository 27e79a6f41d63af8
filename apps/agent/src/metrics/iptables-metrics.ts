import { durationBuckets } from "./buckets.ts";
import type { MetricFactory } from "./registry.ts";

/** Metrics of iptables mode, with upstream's names, labels and buckets. */
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
    conntrackDuration: make.histogram(
      "kubeproxy_conntrack_reconciler_sync_duration_seconds",
      "Duration of a look for stale conntrack entries in seconds",
      durationBuckets,
      family,
    ),
    conntrackDeleted: make.counter(
      "kubeproxy_conntrack_reconciler_deleted_entries_total",
      "Stale conntrack entries deleted",
      family,
    ),
  };
}

export type IptablesMetrics = ReturnType<typeof iptablesMetrics>;
