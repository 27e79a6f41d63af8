import type { Progress } from "../provider.ts";
import type { ClusterImages } from "./kind-cluster.ts";
import type { KindNetwork, KindNetworkGround } from "./networks/network.ts";

/** Where a cluster's images and pod networks come from: made here, or published. */
export interface Source {
  /** @throws Error that says what could not be had */
  images(kubernetes: string, progress: Progress): Promise<ClusterImages>;
  /** How each pod network is set up, by its name in --cni. */
  readonly installers: Readonly<Record<string, NetworkInstaller>>;
}

/** Resolves when the network's configuration is on every node. */
export type NetworkInstaller = (ground: KindNetworkGround, opened: AsyncDisposableStack) => Promise<KindNetwork>;
