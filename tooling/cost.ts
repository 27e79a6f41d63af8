import { readFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import { afterAll, type TaskMeta } from "vitest";

/**
 * Set-up of all tests: a file's processor time, with that of the processes that it started and waited for, goes to the
 * reporter (tooling/counts.ts). Time by the clock says little where several files run at once.
 */
declare module "vitest" {
  interface TaskMeta {
    /** Milliseconds of processor time, imports included. */
    cpu?: number;
  }
}

/** The kernel counts in hundredths of a second on all of Linux' platforms that Node runs on. */
const MS_PER_TICK = 10;
/** Places of cutime and cstime behind the process' name (proc_pid_stat(5)). */
const CHILDREN = [13, 14] as const;

const begun = spent();

// biome-ignore lint/correctness/noEmptyPattern: vitest reads from the pattern which fixtures a hook needs.
afterAll(({}, suite) => {
  const meta: TaskMeta = suite.meta;
  meta.cpu = Math.round(spent() - begun);
});

/** Milliseconds of this thread, or of this process and its ended children. */
function spent(): number {
  const { user, system } = isMainThread ? process.cpuUsage() : process.threadCpuUsage();
  return (user + system) / 1_000 + (isMainThread ? ofChildren() : 0);
}

/** 0 on systems that have no /proc. */
function ofChildren(): number {
  try {
    const stat = readFileSync("/proc/self/stat", "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return CHILDREN.reduce((sum, at) => sum + Number(fields[at]) * MS_PER_TICK, 0);
  } catch {
    return 0;
  }
}
