/** Processes of this machine: daemons that are started, processes that are found, and their memory. */

import { readdir, readFile, writeFile } from "node:fs/promises";
import { errorText } from "@fairlead/base";
import type { Argv } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { execa } from "execa";

/** A process, distinguished from one that gets its number later. */
export interface ProcessId {
  readonly pid: number;
  /** Clock ticks since boot, as /proc/PID/stat has it. */
  readonly startTime: string;
}

export async function processId(pid: number): Promise<ProcessId> {
  return { pid, startTime: (await statOf(pid))[19] ?? "" };
}

/** Seconds of processor time of a process and of those that it has started, as far as they have ended (proc(5)). */
export async function workSeconds(pid: number): Promise<number> {
  const ticks = (await statOf(pid)).slice(11, 15).map(Number);
  return ticks.reduce((sum, count) => sum + count, 0) / TICKS_A_SECOND;
}

/** USER_HZ, on every machine of Linux that Node runs on. */
const TICKS_A_SECOND = 100;

/** The fields of /proc/PID/stat from the third on. */
async function statOf(pid: number): Promise<readonly string[]> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  // The name in parentheses may hold anything; the fields after it do not.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

export async function isRunning({ pid, startTime }: ProcessId): Promise<boolean> {
  const now = await processId(pid).catch(() => undefined);
  return now?.startTime === startTime;
}

/** Sends a signal to that process only; false: it is gone. */
export async function signal(id: ProcessId, name: NodeJS.Signals): Promise<boolean> {
  if (!(await isRunning(id))) return false;
  try {
    return process.kill(id.pid, name);
  } catch {
    return false;
  }
}

/**
 * The first process of a container, by a part of its control group's name that no other container has.
 *
 * @returns its number here, undefined when there is none (yet)
 */
export async function firstProcessIn(group: string): Promise<number | undefined> {
  const pids = (await readdir("/proc")).map(Number).filter(Number.isInteger);
  const found = await Promise.all(
    pids.map(async (pid) => {
      const groups = await readFile(`/proc/${pid}/cgroup`, "utf8").catch(() => "");
      if (!groups.includes(group)) return undefined;
      const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
      // Its numbers, from here to the innermost space.
      return /^NSpid:.*\t1$/m.test(status) ? pid : undefined;
    }),
  );
  return found.find((pid) => pid !== undefined);
}

/** The processes that have this setting in their environment. */
export async function processesWith(name: string, value: string): Promise<readonly ProcessId[]> {
  const pids = (await readdir("/proc")).map(Number).filter((pid) => Number.isInteger(pid) && pid !== process.pid);
  const wanted = `${name}=${value}`;
  const found = await Promise.all(
    pids.map(async (pid) => {
      const environment = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
      return environment.split("\0").includes(wanted) ? processId(pid).catch(() => undefined) : undefined;
    }),
  );
  return found.filter((one) => one !== undefined);
}

/** The commands of the processes below a process: those that it has started, and those that these have started. */
export async function commandsBelow(pid: number): Promise<readonly string[]> {
  const tasks = await readdir(`/proc/${pid}/task`).catch(() => []);
  const lists = await Promise.all(
    tasks.map((task) => readFile(`/proc/${pid}/task/${task}/children`, "utf8").catch(() => "")),
  );
  const found = lists
    .flatMap((list) => list.split(" ").filter(Boolean))
    .map(async (child) => {
      const command = await readFile(`/proc/${child}/cmdline`, "utf8").catch(() => "");
      return [command.replaceAll("\0", " ").trim(), ...(await commandsBelow(Number(child)))];
    });
  return (await Promise.all(found)).flat();
}

/** A process that runs in the background until it is stopped, or until this process ends in whatever way. */
export interface Daemon {
  readonly name: string;
  readonly pid: number;
  /** How it ended, in words; never rejects. */
  readonly ended: Promise<string>;
  /** Resolves once it is gone. May be called twice. */
  stop(signal?: "SIGTERM" | "SIGKILL"): Promise<void>;
}

interface DaemonSettings {
  readonly name: string;
  readonly argv: Argv;
  /** Its output is appended. */
  readonly logFile: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Put before an argv: also a `kill -9` of the process that starts it takes it down. */
export const DIE_WITH_PARENT = ["setpriv", "--pdeathsig", "KILL"];

const PATIENCE_MS = 3_000;

export async function startDaemon(namespace: NetworkNamespace, settings: DaemonSettings): Promise<Daemon> {
  const { name, argv, logFile, env = {} } = settings;
  const output = { file: logFile, append: true };
  const [program = "nsenter", ...prefix] = namespace.argvPrefix;
  const child = execa(program, [...prefix, ...DIE_WITH_PARENT, ...argv], {
    env: { ...namespace.env, ...env },
    stdin: "ignore",
    stdout: output,
    stderr: output,
    reject: false,
  });
  const ended = child.then(({ exitCode, signal, shortMessage }) =>
    exitCode === 0 ? `${name} ended` : `${name} ended: ${shortMessage ?? signal ?? exitCode}`,
  );
  if (child.pid === undefined) throw new Error(await ended);
  const stop = async (signal: "SIGTERM" | "SIGKILL" = "SIGTERM") => {
    child.kill(signal);
    const late = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
    await ended;
    clearTimeout(late);
  };
  return { name, pid: child.pid, ended, stop };
}

/** From now on the process's peak is what it holds from now on (proc(5), clear_refs). */
export async function forgetPeak(pid: number): Promise<void> {
  await writeFile(`/proc/${pid}/clear_refs`, "5");
}

/** The most memory that the process has held at a time, resident, in MiB. */
export function peakMiB(pid: number): Promise<number> {
  return statusMiB(pid, "VmHWM");
}

export function residentMiB(pid: number): Promise<number> {
  return statusMiB(pid, "VmRSS");
}

/** Opens one thing after the other; when a later one fails, those before it are closed again. */
export async function orDispose<T>(open: (opened: AsyncDisposableStack) => Promise<T>): Promise<T> {
  const opened = new AsyncDisposableStack();
  try {
    return await open(opened);
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

/** What an error says, whatever was thrown; of errors that came while others were cleaned up after, all of them. */
export function messageOf(error: unknown): string {
  if (error instanceof SuppressedError) return `${messageOf(error.suppressed)}; then ${messageOf(error.error)}`;
  return errorText(error);
}

async function statusMiB(pid: number, field: "VmHWM" | "VmRSS"): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const [, kB] = status.match(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m")) ?? [];
  return Number(kB) / 1024;
}
