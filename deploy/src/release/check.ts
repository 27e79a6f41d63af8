/** What a release builds, and what is checked of it before it goes out. */

import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { errorText } from "@fairlead/base";
import type { Runner } from "@fairlead/kernel";
import { readmeExample } from "@fairlead/tooling/readme";
import { build } from "esbuild";
import { agentDir, cliDir, repositoryDir } from "../paths.ts";
import { bundleApp, thirdPartyNotices } from "../sbom/bundle.ts";
import type { PublishedPackage } from "./push.ts";

/** What came of trying one package as its users get it. */
export interface PackageCheck {
  readonly name: string;
  /** Absent: fine. */
  readonly problem?: string;
}

/** Apps by package: a program of theirs that prints its version. */
export const PROGRAMS: ReadonlyMap<string, string> = new Map([
  ["@fairlead/agent", "fairlead-proxy"],
  ["@fairlead/cli", "fairlead"],
]);

/**
 * Packs every package, installs all in a clean project, and runs each README's example and each app.
 *
 * @param registry has the packages; absent: they are packed here
 */
export async function checkPackages(
  runner: Runner,
  packages: readonly PublishedPackage[],
  registry?: string,
): Promise<PackageCheck[]> {
  const project = await createCleanProject(runner, packages, registry);
  try {
    const checks: PackageCheck[] = [];
    for (const item of packages) {
      const program = PROGRAMS.get(item.name);
      const problem = await problemOf(() =>
        program === undefined ? runLibrary(project, item) : runApp(project, program, item),
      );
      checks.push({ name: item.name, ...(problem === undefined ? {} : { problem }) });
    }
    return checks;
  } finally {
    await project.remove();
  }
}

type Project = Awaited<ReturnType<typeof createCleanProject>>;

async function runLibrary(project: Project, item: PublishedPackage): Promise<string | undefined> {
  const { printed, promised } = await project.runExample(item);
  return printed === promised ? undefined : `the example printed\n${printed}\nand promises\n${promised}`;
}

async function runApp(project: Project, program: string, { version }: PublishedPackage): Promise<string | undefined> {
  const printed = await project.runBin(program, "--version");
  return printed === `Fairlead v${version}\n` ? undefined : `--version printed ${printed}`;
}

async function problemOf(check: () => Promise<string | undefined>): Promise<string | undefined> {
  try {
    return await check();
  } catch (error) {
    return errorText(error);
  }
}

/** A project of another program, outside of the workspace, with the packed packages installed by plain npm. */
interface CleanProject {
  /** Runs a package's README example with plain `node`: what it printed, and what it promises. */
  runExample(item: PublishedPackage): Promise<{ readonly printed: string; readonly promised: string }>;
  /** Runs a program of an installed package; gives what it printed. */
  runBin(name: string, ...args: readonly string[]): Promise<string>;
  remove(): Promise<void>;
}

/** @param registry has the packages; absent: they are packed here */
async function createCleanProject(
  runner: Runner,
  packages: readonly PublishedPackage[],
  registry?: string,
): Promise<CleanProject> {
  const scratch = await mkdtemp(join(tmpdir(), "fairlead-packed-"));
  const dir = join(scratch, "project");
  const remove = () => rm(scratch, { recursive: true, force: true });
  try {
    await mkdir(dir);
    await writeFile(join(dir, "package.json"), `${JSON.stringify({ name: "another-project", type: "module" })}\n`);
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

/** Builds what is published, as far as it isn't built, and puts the licenses of what the apps bundle alongside them. */
export async function buildPackages(runner: Runner): Promise<void> {
  const filters = ["--filter=./packages/*", "--filter=./apps/*"];
  await runner.run(
    ["pnpm", "--dir", repositoryDir, "exec", "turbo", "run", "build", ...filters, "--output-logs=none"],
    {
      timeoutMs: 1_200_000,
    },
  );
  for (const app of [agentDir, cliDir]) await addNotices(runner, app);
}

async function addNotices(runner: Runner, app: string): Promise<void> {
  const scratch = await mkdtemp(join(tmpdir(), "fairlead-release-"));
  try {
    const { packages } = await bundleApp(runner, app, scratch);
    await writeFile(join(app, "dist/THIRD-PARTY-LICENSES.txt"), await thirdPartyNotices(packages));
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Of a package's whole export, with everything it imports. */
export interface BundleSize {
  readonly name: string;
  /** Bytes. */
  readonly minified: number;
  /** Bytes. */
  readonly gzipped: number;
}

export interface BundleOptions {
  /** Where imports are resolved from. */
  readonly resolveDir: string;
  readonly minify?: boolean;
  /** Of `exports` in package.json, in addition to a browser's. */
  readonly conditions?: readonly string[];
}

/** Names, without the scope, of the packages that docs/packages.md says run in any engine. */
export function anyEnginePackages(page: string): readonly string[] {
  return Array.from(page.matchAll(/^\| @fairlead\/([\w-]+) .*\| any engine +\|$/gm), ([, name = ""]) => name);
}

export async function bundleForBrowser(code: string, options: BundleOptions): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: options.resolveDir, loader: "ts" },
    bundle: true,
    write: false,
    platform: "browser",
    format: "esm",
    minify: options.minify === true,
    conditions: [...(options.conditions ?? [])],
    logLevel: "silent",
  });
  return outputFiles[0]?.text ?? "";
}

/** @param resolveDir a project in which the package is installed */
export async function bundleSize(name: string, resolveDir: string): Promise<BundleSize> {
  const bundle = Buffer.from(
    await bundleForBrowser(`export * from ${JSON.stringify(name)};`, { resolveDir, minify: true }),
  );
  return { name, minified: bundle.length, gzipped: gzipSync(bundle, { level: 9 }).length };
}
