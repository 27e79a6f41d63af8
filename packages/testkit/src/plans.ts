/** Plans made by hand, for what objects do not lead to or not easily. */

import { familyOf } from "@fairlead/base";
import type {
  ForwardingPlan,
  Frontend,
  GroupChange,
  LocalTrafficDetector,
  NodePlan,
  PlanChange,
  PlanEndpoint,
  ServicePortGroup,
} from "@fairlead/core";

const POD_CIDR = "10.144.0.0/16";

/** So many pods; `from`: the number of the first. */
export function endpoints(count: number, { local = false, from = 0 } = {}): PlanEndpoint[] {
  return Array.from({ length: count }, (_, index) => {
    const n = from + index;
    return { address: `10.144.${n >> 8}.${n & 255}`, port: 8080, local };
  });
}

/** A ClusterIP service port `default/NAME` as it is under policy Cluster. */
export function clusterIPGroup(
  name: string,
  address: string,
  cluster: readonly PlanEndpoint[],
  more: Partial<ServicePortGroup> = {},
): ServicePortGroup {
  const service = `default/${name}` as const;
  return {
    id: `${service}/tcp`,
    name: service,
    service,
    family: familyOf(address),
    protocol: "TCP",
    cluster,
    local: [],
    serving: cluster,
    endpointCount: cluster.length,
    frontends: [clusterIP(address, cluster.length > 0)],
    annotations: {},
    ...more,
  };
}

function clusterIP(address: string, served = true): Frontend {
  const proxy = (masquerade: boolean) => ({ verdict: "proxy", set: "cluster", masquerade }) as const;
  const reject = { verdict: "reject" } as const;
  return {
    kind: "cluster-ip",
    reach: "internal",
    at: "address",
    address,
    port: 80,
    policy: "Cluster",
    treatments: served
      ? { pod: proxy(false), node: proxy(true), outside: proxy(true) }
      : { pod: reject, node: reject, outside: reject },
  };
}

export function nodePlan(
  detector: LocalTrafficDetector = { kind: "cidrs", cidrs: [POD_CIDR] },
  nodePortAddresses: NodePlan["nodePortAddresses"] = { kind: "all" },
): NodePlan {
  return { detector, nodePortAddresses };
}

export function planOf(groups: readonly ServicePortGroup[], node: NodePlan = nodePlan()): ForwardingPlan {
  return {
    family: groups[0]?.family ?? "IPv4",
    groups: new Map(groups.map((group) => [group.id, group])),
    node,
    healthChecks: new Map(),
    foreignClusterIPs: new Set(),
    endpointCount: groups.reduce((sum, group) => sum + group.endpointCount, 0),
  };
}

export function changeOf(before: ForwardingPlan, after: ForwardingPlan): PlanChange {
  const groups = new Map<string, GroupChange>();
  for (const id of new Set([...before.groups.keys(), ...after.groups.keys()])) {
    const [old, wanted] = [before.groups.get(id), after.groups.get(id)];
    if (old !== wanted) groups.set(id, { ...(old && { before: old }), ...(wanted && { after: wanted }) });
  }
  return {
    family: before.family,
    groups,
    ...(before.node !== after.node && { node: { before: before.node, after: after.node } }),
    healthChecks: new Map(),
    foreignClusterIPs: { added: [], removed: [] },
  };
}
