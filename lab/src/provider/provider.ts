/** What makes clusters, and the pod networks that it installs. */

import { join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import { type CniFlavor, type CniGround, loadFlavor, type PodNetwork } from "../cni/flavor.ts";
import type { Lack } from "../support/machine.ts";
import { startDaemon } from "../support/processes.ts";
import type { Cluster, ClusterShape } from "./cluster.ts";

/** What a run asks for. */
export interface ClusterRequest {
  /** What `Provider.flavors` names, at least one. */
  readonly cni: readonly string[];
  /** Names of the pod networks that Fairlead ignores. */
  readonly excluded: readonly string[];
  readonly mode: string;
  readonly nodes: number;
  readonly families: readonly IPFamily[];
  /** `v1.36` or a full version */
  readonly kubernetes: string;
  /** One of `Provider.overlays`; absent: the manifests of the mode. */
  readonly overlay?: string;
}

/** Says what is being done, a line each. */
export type Progress = (line: string) => void;

/** Where clusters come from: namespaces of this machine, or kind. */
export interface Provider {
  readonly name: string;
  /** The pod networks that it can have. */
  flavors(): Promise<readonly string[]>;
  /** Folders of deploy/overlays that Fairlead can come by; absent: agents are processes, without manifests. */
  overlays?(): Promise<readonly string[]>;
  /** What this machine lacks for it; none: it can be opened. Changes nothing. */
  lacks(request: ClusterRequest): Promise<readonly Lack[]>;
  shape(request: ClusterRequest): Promise<ClusterShape>;
  /**
   * Builds the cluster and starts Fairlead on it. Everything it starts ends with `dispose`, and with this process in
   * whatever way that ends.
   *
   * @param folder of this run; for what the cluster keeps on disk
   */
  open(request: ClusterRequest, folder: string, progress: Progress): Promise<Cluster>;
}

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

/** Networks that Fairlead ignores serve themselves, if they can. */
export async function followServices(
  { networks }: ClusterShape,
  opened: ReadonlyMap<string, Pick<PodNetwork, "followServices">>,
  kubeconfig: string,
): Promise<void> {
  const excluded = networks.filter((network) => network.excluded);
  await Promise.all(excluded.map(({ name }) => opened.get(name)?.followServices?.(kubeconfig)));
}
