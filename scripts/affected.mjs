// What `pnpm check --changed` looks at: the files of a branch's change, and the tests that these reach. Plain JavaScript
// without dependencies, as the other scripts.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root, tool } from "./steps.mjs";

const CRUISED = ["packages", "apps", "lab", "bench", "e2e", "deploy", "site"];

/** The rules of the layers over all modules. */
export const LAYERS = tool("depcruise", "--config", ".dependency-cruiser.cjs", ...CRUISED);

/** With these it leaves the graph of imports for `importGraph`. */
export const LAYERS_CACHE = ["--cache", ".turbo/layers", "--cache-strategy", "content"];

/** A change here is a change of every answer: what is installed, how checks and tests run, the scripts themselves. */
const EVERYTHING =
  /(^|\/)(package|tsconfig[.\w]*|turbo|biome|knip)\.json$|^pnpm-|\.config\.ts$|^\.dep|^tooling\/|^scripts\/[^/]+\.mjs$/;

/** A folder whose tests may read any file in it. */
const ROOM = /^((packages|apps)\/[^/]+|lab|bench|deploy|e2e|site|scripts)\//;

/**
 * The files of the repository, new ones among them.
 *
 * @param {string} pattern such as `*.test.ts`
 */
export function filesOf(pattern) {
  return git("ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", pattern);
}

/**
 * The files that differ from where the branch left main, uncommitted, new and deleted ones among them.
 *
 * @returns {readonly string[]} relative to the root
 */
export function changedFiles() {
  return [
    ...git("diff", "--name-only", "--no-renames", branchPoint()),
    ...git("ls-files", "--others", "--exclude-standard"),
  ];
}

/** The commit at which the branch left main. */
function branchPoint() {
  for (const main of ["origin/main", "main"]) {
    try {
      return git("merge-base", "HEAD", main)[0];
    } catch {
      // No such branch here.
    }
  }
  return "HEAD";
}

function git(...args) {
  return execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: "pipe" }).split("\n").filter(Boolean);
}

/**
 * Whether a change affects more than what imports the changed files.
 *
 * @param {readonly string[]} changed
 */
export function affectsEverything(changed) {
  return changed.some((file) => EVERYTHING.test(file));
}

/**
 * The modules of the repository, from the run of the layers' rules that has just filled the cache.
 *
 * @returns {readonly {source: string, dependencies: readonly {resolved: string}[]}[]}
 */
export function importGraph() {
  const [program, ...args] = [...LAYERS, ...LAYERS_CACHE, "--output-type", "json"];
  const options = { cwd: root, encoding: "utf8", maxBuffer: 2 ** 28, stdio: ["ignore", "pipe", "ignore"] };
  try {
    return JSON.parse(execFileSync(program, args, options)).modules;
  } catch (error) {
    // It ends with the number of violations, which the step of the layers has reported.
    if (error.stdout) return JSON.parse(error.stdout).modules;
    throw error;
  }
}

/**
 * Which of the tests a change affects: those that import a changed file, through whatever else; and since tests read
 * files as well, all of the package of a changed file that nothing imports, and those that name a file of no package.
 *
 * @param {readonly string[]} changed
 * @param {readonly {source: string, dependencies: readonly {resolved: string}[]}[]} modules
 * @param {readonly string[]} tests every test file
 * @param {(test: string) => string} textOf a test's source
 * @returns {readonly string[]} some of `tests`
 */
export function affectedTests(changed, modules, tests, textOf = (test) => readFileSync(join(root, test), "utf8")) {
  const importers = new Map();
  for (const { source, dependencies } of modules) {
    importers.set(source, importers.get(source) ?? []);
    for (const { resolved } of dependencies) importers.set(resolved, [...(importers.get(resolved) ?? []), source]);
  }
  const reached = new Set(changed.filter((file) => importers.has(file)));
  for (const file of reached) for (const importer of importers.get(file)) reached.add(importer);
  const read = changed.filter((file) => !importers.has(file));
  const rooms = new Set(read.filter((file) => ROOM.test(file)).map(roomOf));
  const names = read.filter((file) => !ROOM.test(file)).flatMap((file) => [file.split("/")[0], file.split("/").at(-1)]);
  return tests.filter(
    (test) => reached.has(test) || rooms.has(roomOf(test)) || (names.length > 0 && mentions(textOf(test), names)),
  );
}

function roomOf(file) {
  return ROOM.exec(file)?.[0];
}

function mentions(text, names) {
  const parts = new Set(text.split(/["'`/]/));
  return names.some((name) => parts.has(name));
}
