import { missingPrograms, type ProgramPaths, type ProgramSet, providePrograms } from "./program-set.ts";
import { ETCD_VERSION } from "./versions.ts";

type Program = "etcd" | "kube-apiserver" | "kube-controller-manager";

/** Where the programs of a control plane are. */
export type ControlPlanePaths = ProgramPaths<Program>;

const ETCD = "go.etcd.io/etcd/server/v3";

/** The programs of a control plane, by version of both, as etcd's is pinned here. */
const controlPlane: ProgramSet<Program> = {
  programs: {
    etcd: { package: ETCD, module: { path: ETCD, version: ETCD_VERSION } },
    "kube-apiserver": { package: "k8s.io/kubernetes/cmd/kube-apiserver" },
    "kube-controller-manager": { package: "k8s.io/kubernetes/cmd/kube-controller-manager" },
  },
  folder: (version) => `control-plane-${version}-etcd-${ETCD_VERSION}`,
};

/** Why there is no control plane to be had on this machine; undefined: there is, built if need be. */
export function missingControlPlane(kubernetes: string): Promise<string | undefined> {
  return missingPrograms(controlPlane, kubernetes);
}

/**
 * Finds the programs, building what is absent: minutes the first time, cached from then on.
 *
 * @throws Error that says what is missing, or what the build said
 */
export function controlPlanePrograms(kubernetes: string, progress: (line: string) => void): Promise<ControlPlanePaths> {
  return providePrograms(controlPlane, kubernetes, progress);
}
