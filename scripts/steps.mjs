import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

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
  if (!quiet) return (await ended(start(argv, "inherit", env))) === 0;
  const child = start(argv, "pipe");
  const pieces = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => pieces.push(piece));
  const ok = (await ended(child)) === 0;
  if (!ok) process.stderr.write(Buffer.concat(pieces));
  return ok;
}

/**
 * Runs a step while others run: every line that it says begins with its name; the last one is how long it took.
 *
 * @returns its exit code, undefined when there was none
 */
export async function runBeside(name, argv, env = {}) {
  const started = process.uptime();
  const child = start(argv, "pipe", env);
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on("line", (line) => console.log(`${name}: ${line}`));
  }
  const code = await ended(child);
  console.log(`${name}: took ${(process.uptime() - started).toFixed(1)} s`);
  return code;
}

/** Hundreds of processes of Node start the same programs: what they compiled is kept for the next one. */
const { NODE_COMPILE_CACHE = join(root, "node_modules", ".cache", "compiled") } = process.env;

const QUIET = { TURBO_TELEMETRY_DISABLED: "1", DO_NOT_TRACK: "1", npm_config_loglevel: "error" };

function start([command, ...args], output, env = {}) {
  const PATH = `${join(root, "node_modules", ".bin")}:${process.env.PATH ?? ""}`;
  return spawn(command, args, {
    cwd: root,
    stdio: [output === "inherit" ? "inherit" : "ignore", output, output],
    env: { ...process.env, PATH, NODE_COMPILE_CACHE, ...QUIET, ...env },
  });
}

/** The exit code once it has said everything. */
function ended(child) {
  return new Promise((resolve) => {
    child.once("error", (error) => {
      console.error(`${child.spawnfile}: ${error.message}`);
      resolve(undefined);
    });
    child.once("close", (code) => resolve(code ?? undefined));
  });
}
