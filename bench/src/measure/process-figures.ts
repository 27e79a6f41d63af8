import { readdir, readFile } from "node:fs/promises";
import { statFields } from "../proxy/processes.ts";

/** Clock ticks in a second, as /proc counts on every Linux of today. */
export const TICKS = 100;

/** CPU seconds of a process so far, those of its children that have ended included; in steps of 10 ms. */
export async function cpuSeconds(pid: number): Promise<number> {
  return cpuSecondsOf(await readFile(`/proc/${pid}/stat`, "utf8"));
}

/** The same of its children only. */
export async function childrenCpuSeconds(pid: number): Promise<number> {
  return ticksOf(await readFile(`/proc/${pid}/stat`, "utf8")).children / TICKS;
}

export function cpuSecondsOf(stat: string): number {
  const { own, children } = ticksOf(stat);
  return (own + children) / TICKS;
}

function ticksOf(stat: string): { readonly own: number; readonly children: number } {
  const [utime = 0, stime = 0, cutime = 0, cstime = 0] = statFields(stat).slice(11, 15).map(Number);
  return { own: utime + stime, children: cutime + cstime };
}

/**
 * The same to the nanosecond for the threads that the process has now: what threads that have ended took is missing.
 * Children's is in steps of 10 ms there, too.
 */
export async function exactCpuSeconds(pid: number): Promise<number> {
  const folder = `/proc/${pid}/task`;
  const read = async (thread: string) => readFile(`${folder}/${thread}/schedstat`, "utf8").catch(() => "0");
  const threads = await Promise.all((await readdir(folder)).map(read));
  return exactCpuSecondsOf(threads, await readFile(`/proc/${pid}/stat`, "utf8"));
}

/** @param threads their `schedstat`: nanoseconds on a CPU, waiting for one, time slices */
export function exactCpuSecondsOf(threads: readonly string[], stat: string): number {
  const { children } = ticksOf(stat);
  return threads.reduce((sum, text) => sum + Number.parseInt(text, 10) / 1e9, children / TICKS);
}

/** Resident memory in MB (10⁶ bytes): now, and the most that there ever was. */
export interface Memory {
  readonly now: number;
  readonly peak: number;
}

export async function memory(pid: number): Promise<Memory> {
  return memoryOf(await readFile(`/proc/${pid}/status`, "utf8"));
}

export function memoryOf(status: string): Memory {
  const field = (name: string) => (Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) * 1024) / 1e6;
  return { now: field("VmRSS"), peak: field("VmHWM") };
}

/** Bytes that came in by an interface of the process's network namespace. */
export async function bytesReceived(pid: number, device: string): Promise<number> {
  return bytesReceivedOf(await readFile(`/proc/${pid}/net/dev`, "utf8"), device);
}

export function bytesReceivedOf(table: string, device: string): number {
  const line = table.split("\n").find((one) => one.trimStart().startsWith(`${device}:`)) ?? "";
  return Number(
    line
      .slice(line.indexOf(":") + 1)
      .trim()
      .split(/\s+/)[0],
  );
}
