import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/** The repository's folder. */
export const root = fileURLToPath(new URL("..", import.meta.url));

/** A line that says what is being done, for the steps that take a while. */
export function sayStep(name) {
  console.log(`\n▸ ${name}`);
}

/**
 * The argument array that runs pnpm in the version of the packageManager field ("pnpm@12.21.0"): npx fetches it once
 * and nothing is installed globally.
 */
export function pnpm(packageManager, args) {
  return ["npx", "--yes", packageManager, ...args];
}

/**
 * Runs one step in the root folder and tells whether it succeeded. A quiet step shows its output only when it failed.
 */
export function runStep(argv, options = {}) {
  return runStatus(argv, options) === 0;
}

/** As `runStep`; gives the exit code, undefined when there was none. */
export function runStatus([command, ...args], { quiet = false } = {}) {
  const result = spawnSync(command, args, {
    cwd: root,
    stdio: quiet ? ["ignore", "pipe", "pipe"] : "inherit",
    encoding: "utf8",
    maxBuffer: 64 << 20,
    env: { ...process.env, TURBO_TELEMETRY_DISABLED: "1", DO_NOT_TRACK: "1", npm_config_loglevel: "error" },
  });
  if (result.error) console.error(`${command}: ${result.error.message}`);
  const ok = result.status === 0;
  if (quiet && !ok) process.stderr.write(`${result.stdout ?? ""}${result.stderr ?? ""}`);
  return result.status ?? undefined;
}
