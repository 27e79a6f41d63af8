import type { IPFamily } from "@fairlead/core";
import type { Lack } from "../support/lack.ts";
import type { Cluster, ClusterShape } from "./cluster.ts";

/** What a run asks for. */
export interface ClusterRequest {
  /** What `Provider.flavors` names, at least one. */
  readonly cni: readonly string[];
  /** Names of the pod networks that Fairlead leaves alone. */
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
  /** What the cluster will be. */
  shape(request: ClusterRequest): Promise<ClusterShape>;
  /**
   * Builds the cluster and starts Fairlead on it. Everything it starts ends with `dispose`, and with this process in
   * whatever way that ends.
   *
   * @param folder of this run; for what the cluster keeps on disk
   * @throws Error that says what failed; nothing is left then
   */
  open(request: ClusterRequest, folder: string, progress: Progress): Promise<Cluster>;
}
