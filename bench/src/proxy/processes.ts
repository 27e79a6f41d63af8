import { readdir, readFile } from "node:fs/promises";

/** `/proc/PID/stat` of all processes; empty: one that has ended meanwhile. */
export async function readProcesses(): Promise<readonly string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  return Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, "utf8").catch(() => "")));
}

/**
 * What stands after the name in /proc/PID/stat, from the state on. The name in parentheses may hold anything; the
 * fields after it do not.
 */
export function statFields(stat: string): readonly string[] {
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** @param stat of /proc/PID/stat */
export function parentOf(stat: string): number {
  return Number(statFields(stat)[1]);
}

/** The processes that one has started itself. @param stats of /proc/PID/stat, of all processes */
export function childrenAmong(stats: readonly string[], parent: number): readonly number[] {
  return stats.filter((stat) => parentOf(stat) === parent).map((stat) => Number.parseInt(stat, 10));
}
