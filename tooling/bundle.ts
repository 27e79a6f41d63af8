import { execFile } from "node:child_process";
import { globSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { build as runTsup } from "tsup";
import { scriptBundle } from "./tsup.ts";

const ROOT = join(import.meta.dirname, "..");
const TSUP = join(ROOT, "node_modules", ".bin", "tsup");

/** One build of an app at a time in a process, whichever of its projects of tests asks for it. */
const running: Map<string, Promise<void>> = onceInProcess("fairlead.bundles", () => new Map());

/** Builds an app's bundle unless it is newer than every source that may go into it: for tests of the bundle itself. */
export function bundleIfStale(app: string): Promise<void> {
  const building = running.get(app) ?? build(app).finally(() => running.delete(app));
  running.set(app, building);
  return building;
}

/**
 * Bundles a script of the test ground.
 *
 * @param entry name of the file, without its `.mjs` → absolute source file
 * @param folder where the file goes
 */
export async function bundleScript(entry: Record<string, string>, folder: string): Promise<void> {
  await runTsup(scriptBundle(entry, folder));
}

async function build(app: string): Promise<void> {
  const patterns = [
    join(app, "{src/**/*.ts,*.ts,package.json}"),
    join(ROOT, "packages/*/{src,build}/**/*.{ts,tsx,css,html}"),
  ];
  const newest = Math.max(...globSync(patterns).map((file) => statSync(file).mtimeMs));
  const built = statSync(join(app, "dist", "main.js"), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (built >= newest) return;
  // tsup reads package.json and entries from there.
  await promisify(execFile)(TSUP, ["--silent"], { cwd: app });
}

/** Vitest gives each project's set-up modules of its own. */
function onceInProcess<T>(name: string, make: () => T): T {
  const all: { [key: symbol]: unknown } = globalThis as never;
  all[Symbol.for(name)] ??= make();
  return all[Symbol.for(name)] as T;
}
