import { readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { koffiPackage } from "@fairlead/tooling/koffi";
import { markdownTable } from "@fairlead/tooling/markdown-table";
import { agentDir, cliDir } from "../paths.ts";

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
  return { agent, cli, packages: packagesOf([agent, cli]) };
}

/** Packages in any of these bundles, by name and version. */
export function packagesOf(bundles: readonly Bundle[]): readonly NpmPackage[] {
  const all = bundles.flatMap(({ packages }) => packages);
  return [...new Map(all.map((one) => [`${one.name}@${one.version}`, one])).values()].sort(byName);
}

/** Bundles the agent for Windows, which its archive has, into a folder. */
export function bundleWindows(runner: Runner, outDir: string): Promise<Bundle> {
  return bundleApp(runner, agentDir, outDir, ["--config", "tsup.windows.config.ts"]);
}

/** Bundles an app into a folder; the source maps say what went in. */
export async function bundleApp(
  runner: Runner,
  app: string,
  outDir: string,
  options: readonly string[] = [],
): Promise<Bundle> {
  const tsup = ["pnpm", "--silent", "--dir", app, "exec", "tsup", "--silent", "--sourcemap"] as const;
  await runner.run([...tsup, "--out-dir", outDir, ...options], { timeoutMs: 300_000 });
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

/** Folders of the packages that files belong to; the project's own sources belong to no such folder. */
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

/** Licenses by their SPDX names that may be bundled into an Apache-2.0 program. */
const COMPATIBLE = new Set([
  "Apache-2.0",
  "MIT",
  "ISC",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "0BSD",
  "BlueOak-1.0.0",
  "Unlicense",
]);

/** Packages whose license a maintainer has to check before they are bundled. */
export function incompatible(packages: readonly NpmPackage[]): NpmPackage[] {
  return packages.filter(({ license }) => !namesOf(license).every((name) => COMPATIBLE.has(name)));
}

/** All that hold at once. Of a choice (`OR`) a maintainer has to take one. */
function namesOf(expression: string): readonly string[] {
  return expression.replace(/^\((.*)\)$/, "$1").split(" AND ");
}

const HEAD = `# Licenses

Fairlead is licensed under the [Apache License 2.0](../LICENSE). \`pnpm run licenses\` writes this list: the packages of others that the
bundles of the agent and of the command line tool contain. Their licenses stand word for word in the image
(\`/usr/local/share/doc/fairlead/THIRD-PARTY-LICENSES.txt\`).

`;

const TAIL = `
The image also contains [Node.js](https://github.com/nodejs/node/blob/main/LICENSE) and packages of Debian, named in
[packages.txt](../deploy/image/packages.txt), with what they depend on. Debian's licenses are in the image, in
\`/usr/share/doc/*/copyright\`; the SBOM published with each image lists all versions.
`;

/** The list as Markdown, without versions: it changes when a package comes or goes, or its license does. */
export function licenseList(packages: readonly NpmPackage[]): string {
  const rows = new Map(packages.map(({ name, license }) => [name, license]));
  return `${HEAD}${markdownTable(["package", "license"], [...rows]).join("\n")}\n${TAIL}`;
}

/** The licenses of what is bundled, word for word, as most of them ask for. */
export async function thirdPartyNotices(packages: readonly NpmPackage[]): Promise<string> {
  const parts = await Promise.all(packages.map(notice));
  return `Fairlead's programs contain the following packages.\n\n${parts.join("\n")}`;
}

async function notice({ name, version, license, dir }: NpmPackage): Promise<string> {
  const files = (await readdir(dir)).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file)).sort();
  const texts = await Promise.all(files.map((file) => readFile(join(dir, file), "utf8")));
  const head = `${"-".repeat(72)}\n${name} ${version}, ${license}\n${"-".repeat(72)}\n`;
  return `${head}\n${texts.map((text) => text.trim()).join("\n\n")}\n`;
}
