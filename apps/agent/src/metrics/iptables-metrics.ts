import type { MetricFactory } from "./registry.ts";

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

export type IptablesMetrics = ReturnType<typeof iptablesMetrics>;
