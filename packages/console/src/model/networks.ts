import { type PlannedNode, suggestCIDRs } from "@fairlead/inspect";
import { ownershipReport } from "@fairlead/intake";
import type { NetworksAnswer } from "../protocol.ts";
import type { AgentSetup } from "./cluster.ts";

/** Whose pods are where, as far as configuration and objects say it. */
export function networksOf(planned: PlannedNode, { config, filter }: AgentSetup): Omit<NetworksAnswer, "planAt"> {
  const known = [...config.clusterCIDRs, ...filter.excludeCIDRs];
  const nodeAddresses = Object.values(planned.options.nodeIPs);
  return {
    cidrs: [
      ...config.clusterCIDRs.map((cidr) => ({ cidr, whose: "ours", from: "--cluster-cidr" }) as const),
      ...filter.excludeCIDRs.map((cidr) => ({ cidr, whose: "another", from: "--exclude-cluster-cidr" }) as const),
    ],
    services: ownershipReport(planned.planner.ownerships()).services,
    // Without a CIDR of the own pods every pod would look like another network's.
    suggestedCIDRs: config.clusterCIDRs.length === 0 ? [] : suggestCIDRs(planned.state, { known, nodeAddresses }),
  };
}
