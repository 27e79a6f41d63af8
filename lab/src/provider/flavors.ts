import { loadFlavor } from "../cni/load.ts";
import type { ClusterShape } from "./cluster.ts";
import { ELSEWHERE_CIDRS, familiesOnly } from "./netns/addresses.ts";
import type { ClusterRequest } from "./provider.ts";

/** In place of a pod network among those that Fairlead leaves alone: one that the cluster does not have. */
export const ELSEWHERE = "elsewhere";

/** What a cluster with the pod networks of a request will be. */
export async function shapeOf(
  provider: string,
  { cni, excluded, mode, families }: ClusterRequest,
  nodeNames: readonly string[],
): Promise<ClusterShape> {
  const flavors = await Promise.all(cni.map(loadFlavor));
  return {
    provider,
    mode,
    families,
    nodeNames,
    ...(excluded.includes(ELSEWHERE) && { elsewhere: familiesOnly(families, ELSEWHERE_CIDRS) }),
    networks: flavors.map(({ name, podCIDRs, ownLoadBalancer, hidesCallers = false, mtu }) => ({
      name,
      podCIDRs: Object.fromEntries(families.map((family) => [family, podCIDRs[family] ?? ""])),
      excluded: excluded.includes(name),
      ownLoadBalancer,
      hidesCallers,
      mtu,
    })),
  };
}
