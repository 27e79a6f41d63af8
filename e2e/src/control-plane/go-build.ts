import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { etcdModule, kubernetesModule, type ModuleFile, versionFlags } from "./module-file.ts";
import type { Program } from "./programs.ts";
import { etcdVersion } from "./versions.ts";

/** A cold build of the API server takes minutes; one that takes longer than this hangs. */
const BUILD_MS = 30 * 60_000;

/**
 * Builds programs from Go modules.
 *
 * @param folder gets the finished programs; what is half built never is in it
 * @throws Error with what `go` said
 */
export async function goBuild(programs: readonly Program[], version: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const work = await mkdtemp(join(folder, ".build-"));
  try {
    const kubernetes = programs.filter((program) => program !== "etcd");
    if (programs.includes("etcd")) await buildEtcd(join(work, "etcd"));
    if (kubernetes.length > 0) await buildKubernetes(kubernetes, version, join(work, "kubernetes"));
    for (const program of programs) {
      const from = join(work, program === "etcd" ? "etcd" : "kubernetes", "bin", program);
      await rename(from, join(folder, program));
    }
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function buildEtcd(work: string): Promise<void> {
  const { GOVERSION = "go1.24" } = JSON.parse(await go(["env", "-json", "GOVERSION"], "/"));
  await writeModule(work, etcdModule(etcdVersion, String(GOVERSION).replace(/^go/, "")));
  await go(["build", "-o", "bin/etcd", "-ldflags", "-s -w", "go.etcd.io/etcd/server/v3"], work);
}

async function buildKubernetes(programs: readonly Program[], version: string, work: string): Promise<void> {
  await mkdir(work, { recursive: true });
  const { GoMod } = JSON.parse(await go(["mod", "download", "-json", `k8s.io/kubernetes@${version}`], work));
  await writeFile(join(work, "upstream.mod"), await readFile(String(GoMod)));
  const upstream: ModuleFile = JSON.parse(await go(["mod", "edit", "-json", "upstream.mod"], work));
  await writeModule(work, kubernetesModule(version, upstream));
  const packages = programs.map((program) => `k8s.io/kubernetes/cmd/${program}`);
  await go(["build", "-o", "bin/", "-ldflags", versionFlags(version), ...packages], work);
}

async function writeModule(work: string, text: string): Promise<void> {
  await mkdir(join(work, "bin"), { recursive: true });
  await writeFile(join(work, "go.mod"), text);
}

/** Gives its output. */
async function go(args: readonly string[], cwd: string): Promise<string> {
  const result = await execa("go", args, {
    cwd,
    env: { CGO_ENABLED: "0", GOFLAGS: "-mod=mod -buildvcs=false", GOWORK: "off" },
    timeout: BUILD_MS,
    reject: false,
  });
  if (result.failed) throw new Error(`go ${args[0]} failed: ${result.stderr || result.shortMessage}`);
  return result.stdout;
}
