import type { MetricFactory } from "./registry.ts";

/** Metrics of probes, and Fairlead's own. */
export function agentMetrics(make: MetricFactory) {
  return {
    healthz: make.counter("kubeproxy_proxy_healthz_total", "Answers of /healthz by status code", ["code"] as const),
    livez: make.counter("kubeproxy_proxy_livez_total", "Answers of /livez by status code", ["code"] as const),
    services: make.gauge(
      "fairlead_services",
      "Services by who serves them: this proxy (ours, mixed) or another network",
      ["ip_family", "ownership"] as const,
    ),
    endpointsExcluded: make.gauge(
      "fairlead_endpoints_excluded",
      "Distinct endpoint addresses of Services that lie in excluded CIDRs",
      ["ip_family"] as const,
    ),
    ownershipChanges: make.counter(
      "fairlead_ownership_changes_total",
      "Services that went from one owner to another, by what decided: their annotation, a rule, their endpoints, or other CIDRs of networks",
      ["from", "to", "reason"] as const,
    ),
    modeFallback: make.gauge(
      "fairlead_mode_fallback",
      "1 where the node cannot do ipvs mode and is served in iptables mode instead",
      [] as const,
    ),
    invalidObjects: make.counter(
      "fairlead_invalid_objects_total",
      "Problems found in objects, each counted once for an object, field and value",
      ["kind"] as const,
    ),
  };
}

export type AgentMetrics = ReturnType<typeof agentMetrics>;
