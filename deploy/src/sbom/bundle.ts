import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { agentDir } from "../paths.ts";

/** An npm package. */
export interface NpmPackage {
  readonly name: string;
  readonly version: string;
  /** SPDX expression. */
  readonly license: string;
  /** Absolute folder. */
  readonly dir: string;
}

/** The agent as one file, and the packages of others that are really in it. */
export interface Bundle {
  readonly file: string;
  readonly agent: NpmPackage;
  /** By name and version. */
  readonly packages: readonly NpmPackage[];
}

/** Bundles the agent into a folder and asks the bundler what went in. */
export async function bundleAgent(runner: Runner, outDir: string): Promise<Bundle> {
  await runner.run(
    ["pnpm", "--silent", "--dir", agentDir, "exec", "tsup", "--silent", "--metafile", "--out-dir", outDir],
    { timeoutMs: 300_000 },
  );
  const metafile: { outputs: Record<string, { inputs: Record<string, { bytesInOutput: number }> }> } = JSON.parse(
    await readFile(join(outDir, "metafile-esm.json"), "utf8"),
  );
  const folders = new Set<string>();
  for (const { inputs } of Object.values(metafile.outputs)) {
    for (const folder of packageFolders(Object.keys(inputs))) folders.add(folder);
  }
  const packages = await Promise.all([...folders].map((folder) => readPackage(join(agentDir, folder))));
  return { file: join(outDir, "main.js"), agent: await readPackage(agentDir), packages: packages.sort(byName) };
}

/** Folders of the packages that files belong to; the project's own sources have none. */
export function packageFolders(files: readonly string[]): string[] {
  const found = files.map((file) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]);
  return [...new Set(found.filter((folder) => folder !== undefined))];
}

async function readPackage(dir: string): Promise<NpmPackage> {
  const { name, version, license } = JSON.parse(await readFile(join(dir, "package.json"), "utf8"));
  return { name: String(name), version: String(version), license: String(license ?? "NOASSERTION"), dir };
}

function byName(a: NpmPackage, b: NpmPackage): number {
  const [left, right] = [`${a.name}@${a.version}`, `${b.name}@${b.version}`];
  return left < right ? -1 : Number(left > right);
}
