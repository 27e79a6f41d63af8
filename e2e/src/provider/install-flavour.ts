import { join } from "node:path";
import type { CniFlavour, CniGround, PodNetwork } from "../../cni/flavour.ts";
import { startDaemon } from "../support/daemon.ts";
import type { ClusterShape } from "./cluster.ts";

/**
 * Sets a flavour up on nodes, and waits until it works.
 *
 * @param folder exists, and is the flavour's own
 */
export async function installFlavour(
  flavour: CniFlavour,
  { nodes, families }: Pick<CniGround, "nodes" | "families">,
  folder: string,
  opened: AsyncDisposableStack,
): Promise<PodNetwork> {
  const network = await flavour.install({
    nodes,
    families: families.filter((family) => flavour.podCIDRs[family] !== undefined),
    folder,
    daemon: async ({ node, name, argv, env = {} }) => {
      const daemon = await startDaemon(node.namespace, { name, argv, env, logFile: join(folder, `${name}.log`) });
      opened.defer(() => daemon.stop());
    },
  });
  opened.defer(() => network.dispose());
  await network.ready();
  return network;
}

/** Networks that Fairlead leaves alone serve themselves, if they can. */
export async function followServices(
  { networks }: ClusterShape,
  opened: ReadonlyMap<string, Pick<PodNetwork, "followServices">>,
  kubeconfig: string,
): Promise<void> {
  const excluded = networks.filter((network) => network.excluded);
  await Promise.all(excluded.map(({ name }) => opened.get(name)?.followServices?.(kubeconfig)));
}
