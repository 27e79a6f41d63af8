import { durationBuckets, programmingBuckets } from "./buckets.ts";
import type { MetricFactory } from "./registry.ts";

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
