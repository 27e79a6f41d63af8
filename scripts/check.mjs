// `pnpm check`: lint, types and pure tests, which need Node and nothing else of the machine. Plain JavaScript without
// dependencies, as the other scripts.
import { execFileSync } from "node:child_process";
import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root, runBeside, tool } from "./steps.mjs";
import { countsOf, summarise } from "./summary.mjs";

const USAGE = `Usage: pnpm check [--changed] [FILTER…]

Lint, types and pure tests: everything that needs no kernel, browser or build. It installs nothing on the machine.

  --changed  tests only what changed since the branch left main, and what depends on it
  FILTER     only tests whose path contains it, such as packages/core or histories

Two minutes on two cores; with --changed a few seconds.`;

/** Two at once: most use one core. The first is the longest. */
const LANES = 2;

const LINTS = [
  ["types", tool("tsc", "-p", "tsconfig.json")],
  ["biome", tool("biome", "check", "--error-on-warnings", ".")],
  [
    "layers",
    tool("depcruise", "--config", ".dependency-cruiser.cjs", "packages", "apps", "lab", "bench", "e2e", "deploy"),
  ],
  ["unused", tool("knip", "--no-config-hints")],
  ["page types", tool("tsc", "-p", "packages/console/tsconfig.page.json")],
  ["tree", [process.execPath, "scripts/check-tree.mjs"]],
];

/** The report of the pure tests. */
export const PURE_REPORT = "pure";

/**
 * Runs the checks.
 *
 * @param {readonly string[]} args as on the command line, without --help
 * @param {(name: string) => boolean} wanted which of them
 * @returns {Promise<Record<string, boolean>>} what each gave
 */
export async function check(args = [], wanted = () => true) {
  const results = {};
  const step = async ([name, argv], env = {}) => {
    results[name] = (await runBeside(name, argv, env)) === 0;
  };
  forgetTypes();
  const waiting = LINTS.filter(([name]) => wanted(name));
  const lane = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await step(next);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  if (!wanted("tests")) return results;
  const vitest = tool("vitest", "run", "--project=pure", ...testArgs(args));
  await step(["tests", vitest], { FAIRLEAD_REPORT: PURE_REPORT });
  return results;
}

/** The compiler remembers modules that it did not find, also when an install has brought them. */
function forgetTypes() {
  const file = ".turbo/types.tsbuildinfo";
  if (mtime(file) < mtime("node_modules/.modules.yaml")) rmSync(join(root, file), { force: true });
}

function mtime(file) {
  return statSync(join(root, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function testArgs(args) {
  const filters = args.filter((arg) => arg !== "--changed");
  if (!args.includes("--changed")) return filters;
  // A change without tests is no failure.
  return [`--changed=${branchPoint()}`, "--passWithNoTests", ...filters];
}

/** The commit at which the branch left main; uncommitted changes count as well. */
function branchPoint() {
  for (const main of ["origin/main", "main"]) {
    try {
      return execFileSync("git", ["merge-base", "HEAD", main], { cwd: root, encoding: "utf8", stdio: "pipe" }).trim();
    } catch {
      // No such branch here.
    }
  }
  return "HEAD";
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const args = process.argv.slice(2);
  const unknown = args.find((arg) => arg.startsWith("-") && arg !== "--changed");
  if (unknown !== undefined) {
    const asked = unknown === "--help" || unknown === "-h";
    console.log(asked ? USAGE : `${unknown}: not an option of pnpm check\n\n${USAGE}`);
    process.exitCode = asked ? 0 : 2;
  } else {
    const steps = await check(args);
    process.exitCode = summarise(steps, countsOf(PURE_REPORT));
  }
}
