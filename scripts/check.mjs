// `pnpm check`: lint, types and pure tests, which need Node and nothing else of the machine. Plain JavaScript without
// dependencies, as the other scripts.
import { existsSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  affectedTests,
  affectsEverything,
  changedFiles,
  filesOf,
  importGraph,
  LAYERS,
  LAYERS_CACHE,
} from "./affected.mjs";
import { root, runAlongside, tool } from "./steps.mjs";
import { countsOf, summarize } from "./summary.mjs";

const USAGE = `Usage: pnpm check [--changed] [FILTER…]

Lint, types and pure tests: everything that needs no kernel, browser or build. It installs nothing on the machine.

  --changed  only what the branch changed since it left main, with what is uncommitted: biome reads the changed files;
             the tests are those that import one of them, through whatever else, or may read it; types, layers and
             unused code are those of all files, from caches in .turbo. A change of a package.json, a configuration or
             a script can affect everything and runs the whole check. CI runs the whole check
  FILTER     only tests whose path contains it, such as packages/core or histories

Two minutes on two cores; with --changed less than twenty seconds where few packages import what changed.`;

/** Two at once: most use one core. The first is the longest. */
const LANES = 2;

const BIOME = tool("biome", "check", "--error-on-warnings");
const UNUSED = tool("knip", "--no-config-hints");

const LINTS = [
  ["types", tool("tsc", "-p", "tsconfig.json")],
  ["biome", [...BIOME, "."]],
  ["layers", LAYERS],
  ["unused", UNUSED],
  ["page types", tool("tsc", "-p", "packages/console/tsconfig.page.json")],
  ["site types", tool("tsc", "-p", "site/tsconfig.page.json")],
  ["tree", [process.execPath, "scripts/check-tree.mjs"]],
];

/** The same with what they remember, and of the changed files where each file is by itself. */
function lintsOf(changed) {
  const there = changed.filter((file) => existsSync(join(root, file)));
  const quick = {
    biome: [...BIOME, "--no-errors-on-unmatched", ...there],
    layers: [...LAYERS, ...LAYERS_CACHE],
    unused: [...UNUSED, "--cache", "--cache-location", ".turbo/unused"],
  };
  return LINTS.filter(([name]) => name !== "biome" || there.length > 0).map(([name, argv]) => [
    name,
    quick[name] ?? argv,
  ]);
}

/** The report of the pure tests. */
export const PURE_REPORT = "pure";

/**
 * Runs the checks.
 *
 * @param {{filters?: readonly string[], changed?: readonly string[]}} what tests whose path contains one of `filters`;
 *   only what the files `changed` affect
 * @param {(name: string) => boolean} wanted which of them
 * @returns {Promise<Record<string, boolean>>} what each gave; no `tests` where there is nothing to run
 */
export async function check({ filters = [], changed } = {}, wanted = () => true) {
  const results = {};
  const step = async ([name, argv], env = {}) => {
    results[name] = (await runAlongside(name, argv, env)) === 0;
  };
  forgetTypes();
  const waiting = (changed === undefined ? LINTS : lintsOf(changed)).filter(([name]) => wanted(name));
  const lane = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await step(next);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  if (!wanted("tests")) return results;
  const tests = changed === undefined ? filters : affected(changed, filters);
  if (changed !== undefined && tests.length === 0) return results;
  const vitest = tool("vitest", "run", "--project=pure", ...tests);
  // Affected tests may be of other kinds.
  const argv = changed === undefined ? vitest : [...vitest, "--passWithNoTests"];
  await step(["tests", argv], { FAIRLEAD_REPORT: PURE_REPORT });
  return results;
}

function affected(changed, filters) {
  const tests = affectedTests(changed, importGraph(), filesOf("*.test.ts"));
  const chosen = tests.filter((test) => filters.length === 0 || filters.some((filter) => test.includes(filter)));
  console.log(`${changed.length} files changed: ${chosen.length} files of tests are affected`);
  return chosen;
}

/** The compiler remembers modules that it did not find, also when an install has brought them. */
function forgetTypes() {
  const file = ".turbo/types.tsbuildinfo";
  if (mtime(file) < mtime("node_modules/.modules.yaml")) rmSync(join(root, file), { force: true });
}

function mtime(file) {
  return statSync(join(root, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const args = process.argv.slice(2);
  const unknown = args.find((arg) => arg.startsWith("-") && arg !== "--changed");
  if (unknown !== undefined) {
    const asked = unknown === "--help" || unknown === "-h";
    console.log(asked ? USAGE : `${unknown}: not an option of pnpm check\n\n${USAGE}`);
    process.exitCode = asked ? 0 : 2;
  } else {
    const filters = args.filter((arg) => arg !== "--changed");
    const changed = args.includes("--changed") ? changedFiles() : undefined;
    const steps = await check({ filters, changed: changed && affectsEverything(changed) ? undefined : changed });
    const tests = "tests" in steps ? { tests: countsOf(PURE_REPORT) } : {};
    process.exitCode = summarize(steps, tests, { reports: "tests" in steps ? [PURE_REPORT] : [] });
  }
}
