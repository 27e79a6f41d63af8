import type { ForwardingPlan, IPFamily } from "@fairlead/core";
import { NETWORKS } from "@fairlead/testkit";

/** A node without a service, which knows where ClusterIPs are. */
export const EMPTY_PLAN: Readonly<Record<IPFamily, ForwardingPlan>> = {
  IPv4: emptyPlan("IPv4"),
  IPv6: emptyPlan("IPv6"),
};

function emptyPlan(family: IPFamily): ForwardingPlan {
  return {
    family,
    groups: new Map(),
    node: {
      detector: { kind: "cidrs", cidrs: [NETWORKS.calico[family]] },
      nodePortAddresses: { kind: "all" },
      serviceCIDRs: [NETWORKS.services[family]],
    },
    healthChecks: new Map(),
    foreignClusterIPs: new Set(),
    endpointCount: 0,
  };
}
