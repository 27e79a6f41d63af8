import { readFile, writeFile } from "node:fs/promises";

/** From now on the process's peak is what it holds from now on (proc(5), clear_refs). */
export async function forgetPeak(pid: number): Promise<void> {
  await writeFile(`/proc/${pid}/clear_refs`, "5");
}

/** The most memory that the process has held at a time, resident, in MiB. */
export function peakMiB(pid: number): Promise<number> {
  return statusMiB(pid, "VmHWM");
}

/** What it holds now, resident, in MiB. */
export function residentMiB(pid: number): Promise<number> {
  return statusMiB(pid, "VmRSS");
}

async function statusMiB(pid: number, field: "VmHWM" | "VmRSS"): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const [, kB] = status.match(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m")) ?? [];
  return Number(kB) / 1024;
}
