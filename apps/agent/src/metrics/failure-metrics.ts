import type { MetricFactory } from "./registry.ts";

/**
 * Failures of a mode that writes no iptables rules, as upstream counts them in nftables mode.
 *
 * @param mode its name
 */
export function failureMetrics(make: MetricFactory, mode: string) {
  const family = ["ip_family"] as const;
  const name = (rest: string) => `kubeproxy_sync_proxy_rules_${mode}_${rest}_failures_total`;
  return {
    sync: make.counter(name("sync"), `Failed syncs in ${mode} mode`, family),
    cleanup: make.counter(name("cleanup"), "Failed removals of stale rules", family),
  };
}

export type FailureMetrics = ReturnType<typeof failureMetrics>;
