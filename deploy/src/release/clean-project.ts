import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { readmeExample } from "@fairlead/tooling/readme";
import type { PublishedPackage } from "./published.ts";

/** A project of another program, outside of the workspace, with the packed packages installed by plain npm. */
export interface CleanProject {
  /** Runs a package's README example with plain `node`: what it printed, and what it promises. */
  runExample(item: PublishedPackage): Promise<{ readonly printed: string; readonly promised: string }>;
  /** Runs a program of an installed package; gives what it printed. */
  runBin(name: string, ...args: readonly string[]): Promise<string>;
  remove(): Promise<void>;
}

/** @param registry has the packages; absent: they are packed here */
export async function createCleanProject(
  runner: Runner,
  packages: readonly PublishedPackage[],
  registry?: string,
): Promise<CleanProject> {
  const scratch = await mkdtemp(join(tmpdir(), "fairlead-packed-"));
  const dir = join(scratch, "project");
  const remove = () => rm(scratch, { recursive: true, force: true });
  try {
    await mkdir(dir);
    await writeFile(join(dir, "package.json"), `${JSON.stringify({ name: "somebody-elses", type: "module" })}\n`);
    const from =
      registry === undefined
        ? await packAll(runner, packages, join(scratch, "packed"))
        : [`--@fairlead:registry=${registry}`, ...packages.map(({ name, version }) => `${name}@${version}`)];
    const install = ["npm", "install", "--no-audit", "--no-fund", "--silent", ...from];
    await runner.run(["env", "-C", dir, ...install], { timeoutMs: 600_000 });
  } catch (error) {
    await remove();
    throw error;
  }
  return {
    runExample: (item) => runExample(runner, dir, item),
    runBin: async (name, ...args) => (await runner.run([join(dir, "node_modules/.bin", name), ...args])).stdout,
    remove,
  };
}

async function packAll(runner: Runner, packages: readonly PublishedPackage[], into: string): Promise<string[]> {
  await mkdir(into);
  for (const { dir } of packages) await runner.run(["pnpm", "--dir", dir, "pack", `--pack-destination=${into}`]);
  return (await readdir(into)).map((name) => join(into, name));
}

async function runExample(runner: Runner, projectDir: string, item: PublishedPackage) {
  const { code, promised } = await readmeExample(item.dir);
  const file = join(projectDir, `${item.name.replaceAll(/[^a-z-]/g, "")}.ts`);
  await writeFile(file, code);
  const argv = ["env", "-C", projectDir, process.execPath, "--no-warnings", file] as const;
  return { printed: (await runner.run(argv)).stdout.trimEnd(), promised };
}
