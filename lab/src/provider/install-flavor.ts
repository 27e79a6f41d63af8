import { join } from "node:path";
import type { CniFlavor, CniGround, PodNetwork } from "../cni/flavor.ts";
import { startDaemon } from "../support/daemon.ts";
import type { ClusterShape } from "./cluster.ts";

/** Runs a flavor's daemons as processes of this machine, in the nodes' networks. @param folder for their logs */
export function daemonsHere(folder: string, opened: AsyncDisposableStack): CniGround["daemon"] {
  return async ({ node, name, argv, env = {} }) => {
    const daemon = await startDaemon(node.namespace, { name, argv, env, logFile: join(folder, `${name}.log`) });
    opened.defer(() => daemon.stop());
  };
}

/**
 * Sets a flavor up on nodes, and waits until it works.
 *
 * @param ground its folder exists, and is the flavor's own
 */
export async function installFlavor(
  flavor: CniFlavor,
  ground: CniGround,
  opened: AsyncDisposableStack,
): Promise<PodNetwork> {
  const families = ground.families.filter((family) => flavor.podCIDRs[family] !== undefined);
  const network = await flavor.install({ ...ground, families });
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
