import { contains } from "@fairlead/base";
import { type AgentConfig, formatError } from "@fairlead/config";

/**
 * Warnings for written excluded CIDRs with an address of this node: the services of pods on the host's network are
 * another network's then, which is most likely a mistake. What is learned never takes a node's address.
 *
 * @param config one that `filterSettings` takes
 * @param addresses the Node's, canonical
 */
export function nodeExclusions({ multiCNI, provenance }: AgentConfig, addresses: readonly string[]): readonly string[] {
  const field = provenance["multiCNI.excludeClusterCIDRs"] ?? "--exclude-cluster-cidr";
  return multiCNI.excludeClusterCIDRs.flatMap((value) => {
    const address = addresses.find((one) => contains(value, one));
    if (address === undefined) return [];
    const message = `contains ${address}, an address of this node: Services of hostNetwork pods are left to another network; exclude its pod CIDRs only`;
    return [formatError({ field, value, message })];
  });
}
