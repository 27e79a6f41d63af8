/** What processes and the machine take. */

import { readdir, readFile } from "node:fs/promises";
import { arch, cpus, loadavg, release, totalmem } from "node:os";
import { createRunner } from "@fairlead/kernel";
import { parentOf, readProcesses, statFields } from "../proxy/running.ts";

/** CPU seconds of a process so far, those of its children that have ended included; in steps of 10 ms. */
export async function cpuSeconds(pid: number): Promise<number> {
  return cpuSecondsOf(await readFile(`/proc/${pid}/stat`, "utf8"));
}

/** Clock ticks in a second, as /proc counts on every Linux of today. */
const TICKS = 100;

export function cpuSecondsOf(stat: string): number {
  const { own, children } = ticksOf(stat);
  return (own + children) / TICKS;
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
interface Memory {
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

/**
 * Watches what else a machine does while something is measured.
 *
 * @returns counts the cores of the machine that other processes kept busy since then, on average
 */
export async function watchOtherWork(): Promise<() => Promise<number>> {
  const [started, before] = [performance.now(), await readUsage()];
  return async () => {
    const [seconds, now] = [(performance.now() - started) / 1000, await readUsage()];
    return Math.max(0, (now.machine - before.machine - (now.own - before.own)) / seconds);
  };
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

/** Where figures were taken. */
export interface Machine {
  /** ISO date, without the time. */
  readonly date: string;
  readonly cpu: string;
  readonly cores: number;
  /** 10⁹ bytes. */
  readonly memoryGB: number;
  readonly kernel: string;
  readonly node: string;
  readonly iptables: string;
  /**
   * Processes that wanted a core in the last 5 minutes, on average, the benchmark's own included: 2 to 3 on a quiet
   * machine.
   */
  readonly load: number;
  /** Cores that other processes kept busy during the benchmark, on average; absent: not recorded. */
  readonly others?: number;
}

/** @param others as `watchOtherWork` says at the end */
export async function describeMachine(others: number): Promise<Machine> {
  const { stdout } = await createRunner().run(["iptables", "--version"]);
  const processors = cpus();
  return {
    date: new Date().toISOString().slice(0, 10),
    cpu: processors[0]?.model.trim() || arch(),
    cores: processors.length,
    memoryGB: Math.round(totalmem() / 1e9),
    kernel: release(),
    node: process.version,
    iptables: stdout.replace(/^iptables v(\S+).*/s, "$1"),
    load: loadavg()[1] ?? Number.NaN,
    others,
  };
}

function ticksOf(stat: string): { readonly own: number; readonly children: number } {
  const [utime = 0, stime = 0, cutime = 0, cstime = 0] = statFields(stat).slice(11, 15).map(Number);
  return { own: utime + stime, children: cutime + cstime };
}

/** CPU seconds so far: of the whole machine, and of this process with all that descend from it. */
interface Usage {
  readonly machine: number;
  readonly own: number;
}

async function readUsage(): Promise<Usage> {
  const stats = await readProcesses();
  return { machine: busySecondsOf(await readFile("/proc/stat", "utf8")), own: ownSeconds(stats, process.pid) };
}
