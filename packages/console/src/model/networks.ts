import { type PlannedNode, suggestCIDRs } from "@fairlead/inspect";
import { type LearnedOnce, ownershipReport } from "@fairlead/intake";
import type { NetworksAnswer } from "../protocol/index.ts";
import type { AgentSetup } from "./agent-setup.ts";

/**
 * Whose pods are where, as far as configuration and objects say it.
 *
 * @param learned of networks' own objects; undefined: nothing is learned
 */
export function networksOf(
  planned: PlannedNode,
  { config, filter }: AgentSetup,
  learned: LearnedOnce | undefined,
): Omit<NetworksAnswer, "planAt"> {
  const { clusterCIDRs: own, excludeCIDRs: others } = learned?.decision ?? { ...config, ...filter };
  const nodeAddresses = Object.values(planned.options.nodeIPs);
  return {
    cidrs: [
      ...config.clusterCIDRs.map((cidr) => ({ cidr, whose: "ours", from: "--cluster-cidr" }) as const),
      ...filter.excludeCIDRs.map((cidr) => ({ cidr, whose: "another", from: "--exclude-cluster-cidr" }) as const),
    ],
    ...(learned && { learned: learned.report }),
    services: ownershipReport(planned.planner.ownerships(), learned?.report, planned.pods).services,
    // Without a CIDR of the own pods every pod would look like another network's.
    suggestedCIDRs: own.length === 0 ? [] : suggestCIDRs(planned.state, { known: [...own, ...others], nodeAddresses }),
  };
}
