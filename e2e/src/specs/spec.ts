import type { IPFamily } from "@fairlead/core";
import type { Cluster, ClusterShape } from "../provider/cluster.ts";
import type { Scene } from "./scene.ts";

export const suites = ["services", "multi-cni", "faults", "self-test"] as const;

export type Suite = (typeof suites)[number];

/** What one spec asserts, seen by clients: who answered, which source was seen, refused, timed out. */
export interface Spec {
  /** Unique; what `--spec` matches, with the family after it. */
  readonly name: string;
  readonly suite: Suite;
  /** It is run once for each family of the cluster; default true. */
  readonly eachFamily?: boolean;
  /** No other spec runs meanwhile: it restarts agents, or stops the API server. */
  readonly alone?: boolean;
  /** Why it cannot run on such a cluster; undefined: it can. */
  readonly unfit?: (shape: ClusterShape, family: IPFamily) => string | undefined;
  /**
   * @returns figures for the report, if it has any
   * @throws Error that says what was expected and what came
   */
  run(scene: Scene, cluster: Cluster): Promise<string | undefined> | Promise<void>;
}
