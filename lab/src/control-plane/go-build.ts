import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { ownPrefix, removeAbandoned } from "../support/owned-folders.ts";
import { kubernetesModule, type ModuleFile, requireModule, versionFlags } from "./module-file.ts";

/** A program that is built from Go modules. */
export interface GoProgram {
  /** Of the file. */
  readonly name: string;
  /** Its main package; of a test binary the package that is tested. */
  readonly package: string;
  /** The module that is built; absent: Kubernetes itself, in the version that is asked for. */
  readonly module?: GoModule;
  /** `go test -c` in place of `go build`. */
  readonly test?: boolean;
  /** It has C in it: gcc must be there. */
  readonly cgo?: boolean;
}

export interface GoModule {
  readonly path: string;
  readonly version: string;
  /** Module → the version in place of one that it wants, and that is not to be had. */
  readonly replaced?: Readonly<Record<string, string>>;
}

/** A cold build of the API server takes minutes; one that takes longer than this hangs. */
const BUILD_MS = 30 * 60_000;

/**
 * Builds programs from Go modules. Each is in the folder as soon as it is built, and never half.
 *
 * @throws Error with what `go` said
 */
export async function goBuild(programs: readonly GoProgram[], kubernetes: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await removeAbandoned(folder);
  const work = await mkdtemp(join(folder, `${await ownPrefix(".build")}-`));
  try {
    const modules = Map.groupBy(programs, ({ module }) => JSON.stringify(module));
    for (const [index, group] of [...modules.values()].entries()) {
      await buildModule(group, kubernetes, join(work, String(index)), folder);
    }
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function buildModule(
  programs: readonly GoProgram[],
  kubernetes: string,
  work: string,
  folder: string,
): Promise<void> {
  await mkdir(work, { recursive: true });
  const module = programs[0]?.module;
  await writeFile(join(work, "go.mod"), await (module ? otherModule(module, work) : kubernetesOwn(kubernetes, work)));
  const flags = module ? "-s -w" : versionFlags(kubernetes);
  for (const { name, package: path, test = false, cgo = false } of programs) {
    const how = cgo ? staticC(flags) : ["-ldflags", flags];
    await go([...(test ? ["test", "-c"] : ["build"]), "-o", name, ...how, path], work, cgo);
    await rename(join(work, name), join(folder, name));
  }
}

/** Without a C library alongside it, as the others are. */
function staticC(flags: string): readonly string[] {
  return ["-tags", "netgo,osusergo", "-ldflags", `${flags} -linkmode external -extldflags -static`];
}

async function otherModule(module: GoModule, work: string): Promise<string> {
  const { GOVERSION = "go1.24" } = JSON.parse(await go(["env", "-json", "GOVERSION"], work));
  return requireModule(module, String(GOVERSION).replace(/^go/, ""));
}

async function kubernetesOwn(version: string, work: string): Promise<string> {
  const { GoMod } = JSON.parse(await go(["mod", "download", "-json", `k8s.io/kubernetes@${version}`], work));
  await writeFile(join(work, "upstream.mod"), await readFile(String(GoMod)));
  const upstream: ModuleFile = JSON.parse(await go(["mod", "edit", "-json", "upstream.mod"], work));
  return kubernetesModule(version, upstream);
}

/** Gives its output. */
async function go(args: readonly string[], cwd: string, cgo = false): Promise<string> {
  const result = await execa("go", args, {
    cwd,
    // What `go` writes on its way goes with the folder, also when it is killed.
    env: { GOTMPDIR: cwd, CGO_ENABLED: cgo ? "1" : "0", GOFLAGS: "-mod=mod -buildvcs=false", GOWORK: "off" },
    timeout: BUILD_MS,
    reject: false,
  });
  if (result.failed) throw new Error(`go ${args[0]} failed: ${result.stderr || result.shortMessage}`);
  return result.stdout;
}
