import type { ForwardingPlan, GroupChange, PlanChange, PlanEndpoint, ServicePortGroup } from "@fairlead/core";

/** The yardstick's plan, made by hand: services with one ClusterIP and the same number of endpoints each. */
export class BenchPlan implements ForwardingPlan {
  readonly family = "IPv4";
  readonly groups = new Map<string, ServicePortGroup>();
  readonly node: ForwardingPlan["node"] = {
    detector: { kind: "cidrs", cidrs: ["10.144.0.0/12"] },
    nodePortAddresses: { kind: "all" },
  };
  readonly healthChecks = new Map();
  readonly foreignClusterIPs = new Set<string>();
  endpointCount = 0;

  constructor(services: number, endpoints: number) {
    for (let i = 0; i < services; i++) this.put(group(i, endpoints));
  }

  /** Puts the group in, or takes it out, and gives the change. */
  put(after: ServicePortGroup): PlanChange {
    return this.#change(after.id, after);
  }

  remove(id: string): PlanChange {
    return this.#change(id, undefined);
  }

  #change(id: string, after: ServicePortGroup | undefined): PlanChange {
    const before = this.groups.get(id);
    if (after === undefined) this.groups.delete(id);
    else this.groups.set(id, after);
    this.endpointCount += (after?.endpointCount ?? 0) - (before?.endpointCount ?? 0);
    const change: GroupChange = { ...(before && { before }), ...(after && { after }) };
    return {
      family: "IPv4",
      groups: new Map([[id, change]]),
      healthChecks: new Map(),
      foreignClusterIPs: { added: [], removed: [] },
    };
  }
}

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
        address: `10.${96 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`,
        port: 80,
        policy: "Cluster",
        treatments: { pod, node: other, outside: other },
      },
    ],
    annotations: {},
  };
}
