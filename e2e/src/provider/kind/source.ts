import type { Progress } from "../provider.ts";
import type { Mount } from "./kind-config.ts";
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

/** What a cluster is started from. */
export interface ClusterImages {
  readonly programs: { readonly kind: string; readonly kubectl: string };
  /** The nodes' image, and the arguments by which Docker takes it in. */
  readonly node: { readonly name: string; readonly taken: readonly string[] };
  /** What every node is given beside. */
  readonly mounts: readonly Mount[];
  /** For the nodes' configuration of containerd, in TOML; absent: the image has all of it. */
  readonly containerdPatches?: readonly string[];
  /** Archives of images for nodes that run already. */
  readonly archives: readonly string[];
}
