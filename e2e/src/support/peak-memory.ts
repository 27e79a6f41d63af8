import { readFile, writeFile } from "node:fs/promises";

/** From now on the process's peak is what it holds from now on (proc(5), clear_refs). */
export async function forgetPeak(pid: number): Promise<void> {
  await writeFile(`/proc/${pid}/clear_refs`, "5");
}

/** The most memory that the process has held at a time, resident, in MiB. */
export async function peakMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}
