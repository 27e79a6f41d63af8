import type { Mount } from "./kind-config.ts";

/** What a cluster is started from. */
export interface ClusterImages {
  readonly programs: { readonly kind: string; readonly kubectl: string };
  /** The nodes' image, and the arguments by which Docker takes it in. */
  readonly node: { readonly name: string; readonly taken: readonly string[] };
  /** What every node is given alongside. */
  readonly mounts: readonly Mount[];
  /** For the nodes' configuration of containerd, in TOML; absent: the image has all of it. */
  readonly containerdPatches?: readonly string[];
  /** Archives of images for nodes that run already. */
  readonly archives: readonly string[];
}
