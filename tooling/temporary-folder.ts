import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

/**
 * What tests put into the folder for temporary files goes into one of their run's own, and with it when the run ends.
 * Its name says whose it is, so that `pnpm e2e down` can remove what a killed run has left.
 *
 * Each project of a run calls it; the first makes the folder for all of them, so that paths stay short: a socket's path
 * has 107 bytes.
 *
 * @returns what vitest calls after all tests
 */
export default function setup(): () => void {
  const before = process.env["TMPDIR"];
  const name = `fairlead-tests-${process.pid}-${startTime()}`;
  if (before !== undefined && basename(before) === name) return () => {};
  const path = join(tmpdir(), name);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  process.env["TMPDIR"] = path;
  return () => {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
    rmSync(path, { recursive: true, force: true });
  };
}

/** In clock ticks since boot; 0 on systems that have no /proc. */
function startTime(): string {
  try {
    const stat = readFileSync("/proc/self/stat", "utf8");
    // The name in parentheses may hold anything; the fields after it do not.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "0";
  } catch {
    return "0";
  }
}
