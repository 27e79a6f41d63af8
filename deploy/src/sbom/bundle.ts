import { readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { koffiPackage } from "@fairlead/tooling/koffi";
import { agentDir, cliDir } from "../paths.ts";

/** An npm package. */
export interface NpmPackage {
  readonly name: string;
  readonly version: string;
  /** SPDX expression. */
  readonly license: string;
  /** Absolute folder. */
  readonly dir: string;
}

/** An app's files, and the packages of others that are really in them. */
export interface Bundle {
  /** Name → text; `main.js` is the one to start, `console.html` a page that it serves. */
  readonly files: ReadonlyMap<string, string>;
  /** Name → compiled code, one file for each machine, that the app looks for alongside itself. */
  readonly binaries: ReadonlyMap<string, Buffer>;
  readonly app: NpmPackage;
  /** By name and version. */
  readonly packages: readonly NpmPackage[];
}

/** What the image can start. */
export interface Programs {
  readonly agent: Bundle;
  readonly cli: Bundle;
  /** Those of both, by name and version. */
  readonly packages: readonly NpmPackage[];
}

/** Bundles the agent and the command line tool into a folder. */
export async function bundlePrograms(runner: Runner, outDir: string): Promise<Programs> {
  const agent = await bundleApp(runner, agentDir, join(outDir, "agent"));
  const cli = await bundleApp(runner, cliDir, join(outDir, "cli"));
  const packages = new Map([...agent.packages, ...cli.packages].map((one) => [`${one.name}@${one.version}`, one]));
  return { agent, cli, packages: [...packages.values()].sort(byName) };
}

/**
 * Bundles an app into a folder; the source maps tell what went in.
 *
 * @param app absolute folder of the app
 */
export async function bundleApp(runner: Runner, app: string, outDir: string): Promise<Bundle> {
  await runner.run(["pnpm", "--silent", "--dir", app, "exec", "tsup", "--silent", "--sourcemap", "--out-dir", outDir], {
    timeoutMs: 300_000,
  });
  const built = (await readdir(outDir)).sort();
  const files = new Map<string, string>();
  const sources = new Set<string>();
  for (const name of built.filter((entry) => /\.(?:js|html)$/.test(entry))) {
    files.set(name, (await readFile(join(outDir, name), "utf8")).replace(/^\/\/# sourceMappingURL=.*\n?/m, ""));
    const map: { sources: string[] } = JSON.parse(await readFile(join(outDir, `${name}.map`), "utf8"));
    for (const source of map.sources) sources.add(resolve(outDir, source));
  }
  const binaries = new Map<string, Buffer>();
  for (const name of built.filter((entry) => entry.endsWith(".node"))) {
    binaries.set(name, await readFile(join(outDir, name)));
  }
  const folders = [...packageFolders([...sources]), ...Array.from(binaries.keys(), binaryPackage)];
  const packages = await Promise.all(folders.map(readPackage));
  return { files, binaries, app: await readPackage(app), packages: packages.sort(byName) };
}

/** The folder of the package that `koffi-linux-x64.node` and its like come from. */
function binaryPackage(file: string): string {
  return koffiPackage(file.replace(/^koffi-|\.node$/g, ""));
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
