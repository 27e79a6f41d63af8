import type { IPFamily } from "@fairlead/core";
import type { Cluster, ClusterNode, Pod } from "../provider/cluster.ts";

/** What a running spec has of its own. Everything made through it is removed after the spec. */
export interface Scene {
  readonly cluster: Cluster;
  /** The family under test; the first one in specs that are not run for each. */
  readonly family: IPFamily;
  /** A Kubernetes namespace of its own. */
  readonly namespace: string;
  /** Two at least. */
  readonly nodes: readonly [first: ClusterNode, second: ClusterNode];
  /** Starts a pod of `network`, by default of the first network that is not excluded. */
  pod(fields: ScenePod): Promise<Pod>;
  /** Runs after the spec, the latest first. */
  later(undo: () => Promise<void>): void;
}

export interface ScenePod {
  readonly node: ClusterNode;
  readonly app?: string;
  readonly network?: string;
  readonly ready?: boolean;
}
