import type { IPFamily } from "@fairlead/core";
import type { Cluster, ClusterNode, NetworkShape, Pod } from "@fairlead/lab/provider/cluster";
import type { ServiceHandle, ServiceSpec } from "./service.ts";

/** What a running spec has of its own. Everything made through it is removed after the spec. */
export interface Scene {
  readonly cluster: Cluster;
  /** The family under test; the first one in specs that are not run for each. */
  readonly family: IPFamily;
  /** A Kubernetes namespace of its own. */
  readonly namespace: string;
  /** The first two. */
  readonly nodes: readonly [first: ClusterNode, second: ClusterNode];
  /** The first network that is not excluded. */
  readonly network: NetworkShape;
  pod(fields: ScenePod): Promise<Pod>;
  /** A service in `namespace`, only of `family` unless `spec` says otherwise. */
  service(name: string, spec: ServiceSpec, annotations?: Readonly<Record<string, string>>): Promise<ServiceHandle>;
  /**
   * Asks until there is nothing left to complain of.
   *
   * @throws Error with the last complaint when that takes too long
   */
  until(what: string, complaint: () => Promise<string | undefined>): Promise<void>;
  /** Runs after the spec, the latest first. */
  later(undo: () => Promise<void>): void;
}

interface ScenePod {
  readonly node: ClusterNode;
  /** Label `app`; default none: a pod that only calls. */
  readonly app?: string;
  /** Default `Scene.network`. */
  readonly network?: string;
  readonly ready?: boolean;
}
