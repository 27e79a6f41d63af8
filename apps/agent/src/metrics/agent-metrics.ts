import type { MetricFactory } from "./registry.ts";

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
