import { readFileSync, readlinkSync } from "node:fs";

/** A process, distinguished from every other one that ever had its number. */
export interface ProcessMark {
  readonly pid: number;
  /** When it started, in ticks since boot (field 22 of /proc/PID/stat, proc_pid_stat(5)). */
  readonly start: number;
  /** The process namespace that `pid` counts in (the inode of /proc/PID/ns/pid). */
  readonly namespace: number;
  /** /proc/sys/kernel/random/boot_id */
  readonly boot: string;
}

/** This process. */
export function ownMark(): ProcessMark {
  return { pid: process.pid, start: startOf(process.pid) ?? 0, namespace: ownNamespace(), boot: bootId() };
}

/** Whether the process runs. Undefined: it is not of this machine, or of another process namespace, as far as known. */
export function stateHere({ pid, start, namespace, boot }: ProcessMark): "runs" | "gone" | undefined {
  if (boot !== bootId() || namespace !== ownNamespace()) return undefined;
  return startOf(pid) === start ? "runs" : "gone";
}

/** Undefined: there is no such process. */
function startOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name of the program stands in parentheses and may have any character in it, spaces and parentheses too.
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]);
  } catch {
    return undefined;
  }
}

function ownNamespace(): number {
  return Number(/\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0]);
}

function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}
