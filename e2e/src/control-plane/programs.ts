import { access, constants } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { goBuild } from "./go-build.ts";
import { etcdVersion, kubernetesVersion } from "./versions.ts";

/** The programs of a control plane. */
const programs = ["etcd", "kube-apiserver", "kube-controller-manager"] as const;

export type Program = (typeof programs)[number];

/** Where each one is. */
export type ProgramPaths = Readonly<Record<Program, string>>;

/**
 * Where a program is taken from: a folder that somebody names in KUBEBUILDER_ASSETS, whatever version it has; else this
 * project's cache, one folder a version.
 */
function candidates(program: Program, kubernetes: string): readonly string[] {
  const { KUBEBUILDER_ASSETS = "" } = process.env;
  const given = KUBEBUILDER_ASSETS === "" ? [] : [join(KUBEBUILDER_ASSETS, program)];
  return [...given, join(cacheFolder(kubernetes), program)];
}

/** By version of both, as etcd's is pinned here. */
function cacheFolder(kubernetes: string): string {
  const { XDG_CACHE_HOME = "" } = process.env;
  const cache = XDG_CACHE_HOME === "" ? join(homedir(), ".cache") : XDG_CACHE_HOME;
  return join(cache, "fairlead", `control-plane-${kubernetesVersion(kubernetes)}-etcd-${etcdVersion}`);
}

async function find(program: Program, kubernetes: string): Promise<string | undefined> {
  for (const file of candidates(program, kubernetes)) {
    const there = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (there) return file;
  }
  return undefined;
}

/** Those that are not there yet. */
async function absent(kubernetes: string): Promise<readonly Program[]> {
  const found = await Promise.all(programs.map((program) => find(program, kubernetes)));
  return programs.filter((_, index) => found[index] === undefined);
}

/** Why there is no control plane to be had on this machine; undefined: there is, built if need be. */
export async function missingControlPlane(kubernetes: string): Promise<string | undefined> {
  const lacking = await absent(kubernetes);
  if (lacking.length === 0) return undefined;
  const { failed } = await execa("go", ["version"], { reject: false });
  if (!failed) return undefined;
  return `${lacking.join(", ")}: set KUBEBUILDER_ASSETS to a folder that has them, or install Go, which builds them`;
}

/**
 * Finds the programs, building what is absent: minutes the first time, cached from then on.
 *
 * @throws Error that says what is missing, or what the build said
 */
export async function controlPlanePrograms(
  kubernetes: string,
  progress: (line: string) => void,
): Promise<ProgramPaths> {
  const lacking = await absent(kubernetes);
  if (lacking.length > 0) {
    const missing = await missingControlPlane(kubernetes);
    if (missing !== undefined) throw new Error(missing);
    progress(`building ${lacking.join(", ")} of ${kubernetesVersion(kubernetes)} from Go modules (minutes, once)`);
    await goBuild(lacking, kubernetesVersion(kubernetes), cacheFolder(kubernetes));
  }
  const found = await Promise.all(programs.map(async (program) => [program, await find(program, kubernetes)] as const));
  return pathsOf(new Map(found));
}

function pathsOf(found: ReadonlyMap<Program, string | undefined>): ProgramPaths {
  const path = (program: Program) => {
    const file = found.get(program);
    if (file === undefined) throw new Error(`${program} was built and is not there`);
    return file;
  };
  return {
    etcd: path("etcd"),
    "kube-apiserver": path("kube-apiserver"),
    "kube-controller-manager": path("kube-controller-manager"),
  };
}
