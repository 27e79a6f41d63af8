import { modeNamed } from "@fairlead/lab/modes";
import type { Cluster, ClusterNode } from "@fairlead/lab/provider/cluster";
import type { Scene } from "../scene.ts";
import type { ServiceHandle } from "../service.ts";

const AT_ONCE_MS = 1_000;

/**
 * Whether an agent that is told by the kernel repairs what another program deletes; others do with their next full
 * sync.
 */
export function repairsAtOnce({ mode }: Pick<Cluster, "mode">): boolean {
  return modeNamed(mode).repairMs <= AT_ONCE_MS;
}

/** An operator takes something of a service away on a node, by hand. @throws Error in modes that cannot be broken so */
export async function deleteService(
  { cluster, family, namespace }: Scene,
  node: ClusterNode,
  { name, clusterIP }: Pick<ServiceHandle, "name" | "clusterIP">,
): Promise<void> {
  const { byHand } = modeNamed(cluster.mode);
  if (byHand === undefined) throw new Error(`nobody knows what to break in ${cluster.mode} mode`);
  await node.run(byHand.noService(family, `${namespace}/${name}`, clusterIP));
}
