import type { IPFamily } from "@fairlead/core";
import type { CniFlavor, PodNetwork } from "../../../cni/flavor.ts";
import type { ApiClient } from "../../../control-plane/api-client.ts";
import type { Progress } from "../../provider.ts";
import type { KindCluster } from "../kind-cluster.ts";
import type { Machine } from "../machine.ts";

/** What a pod network is given to set itself up with. */
export interface KindNetworkGround {
  readonly cluster: KindCluster;
  readonly flavor: CniFlavor;
  readonly families: readonly IPFamily[];
  readonly kubernetes: string;
  readonly machine: Machine;
  readonly api: ApiClient;
  /** A folder of its own on this machine. */
  readonly folder: string;
  /** The same folder on every node. */
  readonly nodeFolder: string;
  /** `/etc/cni/net.d` for the network of every pod that does not say; else a folder that its runtime class names. */
  readonly configFolder: string;
  readonly progress: Progress;
}

/** A pod network that works. */
export type KindNetwork = Pick<PodNetwork, "state" | "followServices">;

/** Writes a CNI configuration on a node. */
export async function writeConfig(
  node: KindCluster["controlPlane"],
  folder: string,
  name: string,
  config: unknown,
): Promise<void> {
  const file = `${folder}/10-${name}.conflist`;
  await node.exec(["sh", "-c", 'mkdir -p "$(dirname "$1")" && cat >"$1.part" && mv "$1.part" "$1"', "sh", file], {
    input: JSON.stringify(config),
  });
}

export const HOST_PORTS = { type: "portmap", capabilities: { portMappings: true } } as const;
