import { loadFlavour } from "../../cni/load.ts";
import type { ClusterShape } from "./cluster.ts";
import type { ClusterRequest } from "./provider.ts";

/** What a cluster with the pod networks of a request will be. */
export async function shapeOf(
  provider: string,
  { cni, excluded, mode, families }: ClusterRequest,
  nodeNames: readonly string[],
): Promise<ClusterShape> {
  const flavours = await Promise.all(cni.map(loadFlavour));
  return {
    provider,
    mode,
    families,
    nodeNames,
    networks: flavours.map(({ name, podCIDRs, ownLoadBalancer, hidesCallers = false, mtu }) => ({
      name,
      podCIDRs: Object.fromEntries(families.map((family) => [family, podCIDRs[family] ?? ""])),
      excluded: excluded.includes(name),
      ownLoadBalancer,
      hidesCallers,
      mtu,
    })),
  };
}
