import type { ForwardingPlan, PlanChange, PlanEndpoint, ServicePortGroup } from "@fairlead/core";

/** A plan made by hand, of groups that come and change. */
export class HandMadePlan implements ForwardingPlan {
  readonly family = "IPv4";
  readonly groups = new Map<string, ServicePortGroup>();
  readonly node: ForwardingPlan["node"] = {
    detector: { kind: "cidrs", cidrs: ["10.144.0.0/12"] },
    nodePortAddresses: { kind: "all" },
  };
  readonly healthChecks = new Map();
  readonly foreignClusterIPs = new Set<string>();
  endpointCount = 0;

  /** Puts the group in and gives the change. */
  put(after: ServicePortGroup): PlanChange {
    const before = this.groups.get(after.id);
    this.groups.set(after.id, after);
    this.endpointCount += after.endpointCount - (before?.endpointCount ?? 0);
    return {
      family: "IPv4",
      groups: new Map([[after.id, { ...(before && { before }), after }]]),
      healthChecks: new Map(),
      foreignClusterIPs: { added: [], removed: [] },
    };
  }
}

/** A service with one ClusterIP and that many endpoints. */
export function group(i: number, endpoints: number): ServicePortGroup {
  const service = `team-${i % 100}/service-${i}` as const;
  const cluster = Array.from({ length: endpoints }, (_, e): PlanEndpoint => {
    const n = i * 10 + e;
    return { address: `10.${144 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`, port: 8080, local: false };
  });
  const pod = { verdict: "proxy", set: "cluster", masquerade: false } as const;
  const other = { verdict: "proxy", set: "cluster", masquerade: true } as const;
  return {
    id: `${service}:http/tcp`,
    name: `${service}:http`,
    service,
    family: "IPv4",
    protocol: "TCP",
    cluster,
    local: [],
    serving: cluster,
    endpointCount: endpoints,
    frontends: [
      {
        kind: "cluster-ip",
        reach: "internal",
        at: "address",
        address: `10.${96 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`,
        port: 80,
        policy: "Cluster",
        treatments: { pod, node: other, outside: other },
      },
    ],
    annotations: {},
  };
}
