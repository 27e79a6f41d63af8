import type { IPFamily } from "@fairlead/core";
import type { Cluster, ClusterShape } from "@fairlead/lab/provider/cluster";
import type { Scene } from "./scene.ts";

export const SUITES = [
  "services",
  "multi-cni",
  "networks",
  "faults",
  "swap",
  "attacks",
  "self-test",
  "soak",
  "sig-network",
  "sig-network-others",
  "rollout",
] as const;

export type Suite = (typeof SUITES)[number];

/** The packages whose promises specs show, by the names of their folders. */
export const SPEC_PACKAGES = [
  "agent",
  "backend-iptables",
  "backend-ipvs",
  "backend-nftables",
  "backend-userspace",
  "cli",
  "core",
  "endpoint-filter",
  "kernel",
  "networks",
  "watch",
] as const;

export type SpecPackage = (typeof SPEC_PACKAGES)[number];

/** What the specs of a suite are about, unless they say otherwise. */
const SUBJECTS_OF_SUITE: Readonly<Record<Suite, readonly SpecPackage[]>> = {
  services: ["core", "backend-iptables", "backend-ipvs", "backend-nftables", "backend-userspace"],
  "multi-cni": ["endpoint-filter"],
  networks: ["networks"],
  faults: ["agent"],
  swap: ["agent"],
  attacks: ["agent"],
  "self-test": [],
  soak: [],
  "sig-network": ["agent"],
  "sig-network-others": ["agent"],
  rollout: ["agent"],
};

export function subjectsOf({ suite, about }: Pick<Spec, "suite" | "about">): readonly SpecPackage[] {
  return about ?? SUBJECTS_OF_SUITE[suite];
}

/** What was counted → how much, with its unit. */
export type Figures = Readonly<Record<string, string>>;

/** What one spec asserts, seen by clients: who answered, which source was seen, refused, timed out. */
export interface Spec {
  /** Unique; what `--spec` matches, with the family after it. */
  readonly name: string;
  readonly suite: Suite;
  /** The packages that it is about; default: those of its suite. */
  readonly about?: readonly SpecPackage[];
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
  run(scene: Scene, cluster: Cluster): Promise<Figures | undefined> | Promise<void>;
}
