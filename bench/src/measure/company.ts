import { readFile } from "node:fs/promises";
import { parentOf, readProcesses } from "../proxy/processes.ts";
import { cpuSecondsOf, TICKS } from "./process-figures.ts";

/** CPU seconds so far: of the whole machine, and of this process with all that descend from it. */
interface Usage {
  readonly machine: number;
  readonly own: number;
}

/**
 * Watches what else a machine does while something is measured.
 *
 * @returns tells how many of the machine's cores other processes kept busy since then, on average
 */
export async function watchOtherWork(): Promise<() => Promise<number>> {
  const [started, before] = [performance.now(), await readUsage()];
  return async () => {
    const [seconds, now] = [(performance.now() - started) / 1000, await readUsage()];
    return Math.max(0, (now.machine - before.machine - (now.own - before.own)) / seconds);
  };
}

async function readUsage(): Promise<Usage> {
  const stats = await readProcesses();
  return { machine: busySecondsOf(await readFile("/proc/stat", "utf8")), own: ownSeconds(stats, process.pid) };
}

/** What /proc/stat says of all cores together: everything but idling, waiting for disks, and what the host took. */
export function busySecondsOf(stat: string): number {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] =
    /^cpu +(.+)$/m.exec(stat)?.[1]?.split(" ").map(Number) ?? [];
  return (user + nice + system + irq + softirq) / TICKS;
}

/** @param stats of /proc/PID/stat, of all processes */
export function ownSeconds(stats: readonly string[], root: number): number {
  const children = Map.groupBy(stats, parentOf);
  const total = (stat: string): number => {
    const pid = Number.parseInt(stat, 10);
    return (children.get(pid) ?? []).reduce((sum, child) => sum + total(child), cpuSecondsOf(stat));
  };
  const own = stats.find((stat) => Number.parseInt(stat, 10) === root);
  return own === undefined ? 0 : total(own);
}
