import { familyOf } from "@fairlead/base";
import type { ForwardingPlan, PlanChange, PlanEndpoint, ServicePortGroup } from "@fairlead/core";

/** Plans of one service, made by hand. */

const PROXY = { verdict: "proxy", set: "cluster", masquerade: true } as const;

export function clusterIPGroup(address: string, cluster: readonly PlanEndpoint[]): ServicePortGroup {
  return {
    ...{
      id: "default/web/tcp",
      name: "default/web",
      service: "default/web",
      family: familyOf(address),
      protocol: "TCP",
    },
    ...{ cluster, local: [], serving: cluster, endpointCount: cluster.length, annotations: {} },
    frontends: [
      {
        ...{ kind: "cluster-ip", reach: "internal", at: "address", address, port: 80, policy: "Cluster" },
        treatments: { pod: PROXY, node: PROXY, outside: PROXY },
      },
    ],
  };
}

export function planOf(group: ServicePortGroup): ForwardingPlan {
  return {
    ...{ family: group.family, groups: new Map([[group.id, group]]), endpointCount: group.endpointCount },
    node: { detector: { kind: "none" }, nodePortAddresses: { kind: "all" } },
    healthChecks: new Map(),
    foreignClusterIPs: new Set(),
  };
}

export function changeOf(before: ServicePortGroup, after: ServicePortGroup): PlanChange {
  const groups = new Map([[before.id, { before, after }]]);
  return { family: after.family, groups, healthChecks: new Map(), foreignClusterIPs: { added: [], removed: [] } };
}
