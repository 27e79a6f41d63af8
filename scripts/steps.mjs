import { spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { isGuarded, startGuard } from "../tooling/guard.mjs";

/** The repository's folder. */
export const root = fileURLToPath(new URL("..", import.meta.url));

/** A line that says what is being done and how long all before it took, for the steps that take a while. */
export function sayStep(name) {
  console.log(`\n▸ ${name} (after ${Math.round(process.uptime())} s)`);
}

/**
 * The argument array that runs pnpm in the version of the packageManager field ("pnpm@12.21.0"): npx fetches it once
 * and nothing is installed globally.
 */
export function pnpm(packageManager, args) {
  return ["npx", "--yes", packageManager, ...args];
}

/** A program of the workspace, with the workspace's own Node. */
export function tool(name, ...args) {
  return [join(root, "node_modules", ".bin", name), ...args];
}

/**
 * Runs one step in the root folder and says whether it succeeded. A quiet step shows its output only when it failed.
 */
export async function runStep(argv, { quiet = false, env = {} } = {}) {
  if (!quiet) return (await ended(start(argv, "inherit", { env }))) === 0;
  const child = start(argv, "pipe", { env });
  const pieces = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => pieces.push(piece));
  const ok = (await ended(child)) === 0;
  if (!ok) process.stderr.write(Buffer.concat(pieces));
  return ok;
}

/**
 * Runs a step while others run: every line of its output begins with its name; the last one is how long it took.
 *
 * @returns its exit code, undefined when there was none
 */
export async function runAlongside(name, argv, env = {}) {
  const started = process.uptime();
  const child = start(argv, "pipe", { env });
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on("line", (line) => console.log(`${name}: ${line}`));
  }
  const code = await ended(child);
  console.log(`${name}: took ${(process.uptime() - started).toFixed(1)} s`);
  return code;
}

/** What a run of vitest with FAIRLEAD_REPORT=NAME leaves (tooling/counts.ts). */
export function reportFile(name, folder = root) {
  return join(folder, ".vitest", `${name}.json`);
}

/** Hundreds of processes of Node start the same programs: what they compiled is kept for the next one. */
const { NODE_COMPILE_CACHE = join(root, "node_modules", ".cache", "compiled") } = process.env;

const QUIET = { TURBO_TELEMETRY_DISABLED: "1", DO_NOT_TRACK: "1", npm_config_loglevel: "error" };

/**
 * Starts a program that ends with this process, with all that it starts (tooling/guard.mjs). The report of an earlier run
 * goes first, so that it does not count for one that is killed.
 *
 * @param {"inherit" | "pipe" | "ignore" | number} output what becomes of its output; a number: a file that is open
 */
export function start([command, ...args], output, { env = {}, cwd = root } = {}) {
  if (env.FAIRLEAD_REPORT !== undefined) rmSync(reportFile(env.FAIRLEAD_REPORT), { force: true });
  const PATH = `${join(root, "node_modules", ".bin")}:${process.env.PATH ?? ""}`;
  const child = spawn(command, args, {
    cwd,
    stdio: [output === "inherit" ? "inherit" : "ignore", output, output],
    env: { ...process.env, PATH, NODE_COMPILE_CACHE, ...QUIET, ...guarded(), ...env },
  });
  running.add(child);
  child.once("close", () => running.delete(child));
  return child;
}

/** The exit code once its output is complete; none once this process received a signal to end. */
export async function ended(child) {
  const code = await new Promise((resolve) => {
    child.once("error", (error) => {
      console.error(`${child.spawnfile}: ${error.message}`);
      resolve(undefined);
    });
    child.once("close", (ended) => resolve(ended ?? undefined));
  });
  // What would come next does not: the last of those that run ends this process.
  if (leaving !== undefined) await (running.size === 0 ? leave() : new Promise(() => {}));
  return code;
}

const running = new Set();

/** The guard of what this process starts; none where this process has one itself. */
let guard;
let watched = false;

function guarded() {
  if (!watched) {
    watched = true;
    if (!isGuarded()) guard = startGuard("fairlead");
    watchEnds();
  }
  return guard === undefined ? {} : { TMPDIR: guard.folder };
}

/** Everything that ends this process before its time, and its end. */
function watchEnds() {
  process.once("beforeExit", () => guard?.end(true));
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, stop);
  // A `kill -9` of npm leaves its script running.
  if (script) setInterval(() => starter() !== STARTER && leave(), ORPHAN_MS).unref();
}

/** Its name in package.json, where a package manager runs this script. */
const { npm_lifecycle_event: script = "" } = process.env;
const ORPHAN_MS = 500;
const STARTER = starter();

/** The process that runs this script, such as npm, and the shell in between, if there is one. */
function starter() {
  const parent = process.ppid;
  try {
    // "PID (NAME) STATE PARENT …"
    const [, name, above] = /\((.*)\) \S (\d+)/s.exec(readFileSync(`/proc/${parent}/stat`, "utf8"));
    return name.endsWith("sh") ? `${parent} of ${above}` : String(parent);
  } catch {
    return String(parent);
  }
}

/** What this process has started may take that long to end by itself; the test ground takes five seconds. */
const GRACE_MS = 8_000;
/** npm sends Ctrl-C to its script, which has it from the terminal as well. */
const TWICE_MS = 1_000;

/** Since when this process ends, and the exit code. */
let leaving;

/** Ctrl-C reaches what runs as well: it may end by itself. A second one ends everything at once. */
function stop(signal) {
  if (leaving !== undefined) {
    if (performance.now() - leaving.since > TWICE_MS) leave();
    return;
  }
  leaving = { since: performance.now(), code: 128 + constants.signals[signal] };
  if (signal !== "SIGINT") for (const child of running) child.kill(signal);
  setTimeout(leave, GRACE_MS);
  if (running.size === 0) leave();
}

async function leave() {
  leaving ??= { since: performance.now(), code: 1 };
  if (guard === undefined) for (const child of running) child.kill("SIGKILL");
  await guard?.end(false);
  process.exit(leaving.code);
}
