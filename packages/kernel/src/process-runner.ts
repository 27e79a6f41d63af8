/** The one runner of processes: by argument array, with limits of time and memory. */

import { readFile } from "node:fs/promises";
import { nextTurn } from "@fairlead/base";
import type { Options } from "execa";
import {
  type Argv,
  CommandError,
  coalesce,
  type FailureReason,
  type Input,
  type Runner,
  type RunOptions,
  type RunResult,
  type StreamOptions,
} from "./runner.ts";

/** How processes are started. */
export interface ProcessRunnerOptions {
  /** Put before each argv, such as `NetworkNamespace.argvPrefix`. */
  readonly prefix?: readonly string[];
  /** Alongside the environment of this process; `LC_ALL=C` is always set, and `GLIBC_TUNABLES` where neither has it. */
  readonly env?: Readonly<Record<string, string>>;
  /** Milliseconds a process may take when its call does not say. Default 60,000. */
  readonly timeoutMs?: number;
  /** Milliseconds after which a process is killed that another program has stopped (SIGSTOP). Default 10,000. */
  readonly stoppedMs?: number;
}

/** Runs real processes. */
export function createRunner(options: ProcessRunnerOptions = {}): Runner {
  const full = (argv: Argv): Argv => withPrefix(options.prefix ?? [], argv);
  const settings = (call: RunOptions & StreamOptions) => processOptions(options, call);
  return {
    run: (argv, call = {}) => runToEnd(full(argv), settings(call), call.input),
    stream: (argv, call = {}) => streamOutput(full(argv), settings(call)),
  };
}

/** A process was started in this turn of the event loop. */
let taken = false;

/**
 * Waits for a turn of the event loop in which no process has been started, at best this one. Node starts a process in
 * its own thread, and the fork copies the page tables of all that is resident: some milliseconds, during which nothing
 * is answered.
 */
export async function ownTurn(): Promise<void> {
  while (taken) await nextTurn();
  taken = true;
  nextTurn().then(() => {
    taken = false;
  });
}

/** Where the network tools live; plain users' PATH often lacks them. */
const SYSTEM_FOLDERS = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/** PATH for child processes: this process's own, and the system folders behind it. */
export function searchPath(): string {
  const { PATH = "/usr/bin:/bin" } = process.env;
  const folders = PATH.split(":");
  return [...folders, ...SYSTEM_FOLDERS.filter((folder) => !folders.includes(folder))].join(":");
}

const STOPPED = 10_000;
const MAX_STDOUT = 16 * 1024 * 1024;
const MAX_STDERR = 1024 * 1024;

function processOptions(options: ProcessRunnerOptions, call: RunOptions & StreamOptions) {
  const settings = {
    env: { ...toolMemory(), ...options.env, LC_ALL: "C", PATH: searchPath() },
    timeout: call.timeoutMs ?? options.timeoutMs ?? 60_000,
    ...(call.signal && { cancelSignal: call.signal }),
    maxBuffer: { stdout: call.maxStdout ?? MAX_STDOUT, stderr: MAX_STDERR },
    forceKillAfterDelay: 2_000,
    stripFinalNewline: false,
    reject: false,
  } as const satisfies Options;
  return { ...settings, patience: options.stoppedMs ?? STOPPED };
}

type Settings = ReturnType<typeof processOptions>;

/** An agent that asks its kernel by netlink starts no process: execa would be a fiftieth of its start. */
function whenNeeded(): Promise<typeof import("execa")> {
  return import("execa");
}

async function runToEnd(
  [program, ...args]: Argv,
  { patience, ...settings }: Settings,
  input?: Input,
): Promise<RunResult> {
  const stdin = input === undefined ? "ignore" : coalesce(typeof input === "string" ? [input] : input);
  const { execa } = await whenNeeded();
  await ownTurn();
  const child = execa(program, args, { ...settings, stdin });
  const watch = watchStopped(child, patience);
  const result = await child.finally(() => watch.end());
  if (result.failed) throw commandError([program, ...args], { ...settings, patience, watch }, result);
  return { stdout: result.stdout, stderr: result.stderr };
}

async function* streamOutput(
  [program, ...args]: Argv,
  { patience, ...settings }: Settings,
): AsyncGenerator<string, void, void> {
  const { execa } = await whenNeeded();
  await ownTurn();
  const child = execa(program, args, { ...settings, stdin: "ignore", buffer: { stdout: false, stderr: true } });
  const watch = watchStopped(child, patience);
  let read = false;
  try {
    child.stdout.setEncoding("utf8");
    for await (const piece of child.stdout) yield String(piece);
    read = true;
  } catch (error) {
    // A killed process closes its output early; how it ended says more.
    if (!(await child).failed) throw error;
  } finally {
    if (!read) child.kill("SIGKILL");
    await child;
    watch.end();
  }
  const result = await child;
  if (result.failed) throw commandError([program, ...args], { ...settings, patience, watch }, result);
}

interface Ended {
  readonly timedOut: boolean;
  readonly isCanceled: boolean;
  readonly isMaxBuffer: boolean;
  readonly exitCode?: number | undefined;
  readonly signal?: string | undefined;
  readonly code?: string | undefined;
  readonly stderr?: unknown;
  readonly stdout?: unknown;
  readonly cause?: unknown;
}

interface StopWatch {
  /** It was killed because it stood still. */
  readonly killed: boolean;
  end(): void;
}

interface Circumstances {
  readonly timeout: number;
  readonly patience: number;
  readonly watch: StopWatch;
}

function commandError(argv: Argv, { timeout, patience, watch }: Circumstances, result: Ended): CommandError {
  const stderr = typeof result.stderr === "string" ? result.stderr : "";
  return new CommandError({
    argv,
    reason: watch.killed ? "stopped" : reasonOf(result, stderr),
    exitCode: result.exitCode,
    signal: result.signal,
    stderr,
    stdout: typeof result.stdout === "string" ? result.stdout : "",
    timeoutMs: watch.killed ? patience : timeout,
    cause: result.cause,
  });
}

function reasonOf(result: Ended, stderr: string): FailureReason {
  if (result.timedOut) return "timeout";
  if (result.isCanceled) return "aborted";
  if (result.isMaxBuffer) return "output";
  // EACCES: not found either, and a folder of PATH may not be looked into.
  if (result.code === "ENOENT" || result.code === "EACCES") return "not-found";
  // nsenter, env and their like say so themselves when what they should run is not there.
  if (result.exitCode === 127 && stderr.includes("No such file or directory")) return "not-found";
  if (result.exitCode === 126 && stderr.includes("Permission denied")) return "not-found";
  if (result.signal !== undefined) return "signal";
  return result.exitCode === undefined || result.exitCode === 0 ? "start" : "exit";
}

function withPrefix(prefix: readonly string[], argv: Argv): Argv {
  const [first, ...rest] = [...prefix, ...argv];
  return first === undefined ? argv : [first, ...rest];
}

interface Watched {
  readonly pid?: number | undefined;
  kill(signal: "SIGKILL"): boolean;
}

/**
 * Kills a process that another program has stopped (SIGSTOP, a debugger that left) and that has not gone on for so
 * long: it would hold the sync, and with the legacy tools the lock, until its time is over, which for large tables is
 * many minutes.
 *
 * @param patience milliseconds
 */
function watchStopped(child: Watched, patience: number): StopWatch {
  const watch = { killed: false, end: () => clearInterval(timer) };
  let before = false;
  const timer = setInterval(async () => {
    const stopped = await isStopped(child.pid);
    if (stopped && before) {
      watch.killed = true;
      child.kill("SIGKILL");
    }
    before = stopped;
  }, patience / 2);
  timer.unref();
  return watch;
}

/** `/proc/PID/stat`: the state stands behind the name in brackets, T for stopped. */
async function isStopped(pid: number | undefined): Promise<boolean> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "latin1");
    return stat.startsWith(" T ", stat.lastIndexOf(")") + 1);
  } catch {
    return false;
  }
}

/** Bytes that no tool comes to: the threshold is never crossed. */
const NEVER = 2 ** 30;

/**
 * How glibc's malloc serves a program that reads all rules of a table, works on them and ends: from huge pages, where
 * the kernel gives them on request (`/sys/kernel/mm/transparent_hugepage/enabled`: madvise), in large steps, and given
 * back by its end only. A change in a large table of the legacy variant takes a fifth less. Other C libraries know no
 * such variable, older glibc's not each name in it.
 */
const TUNABLES = [
  "glibc.malloc.hugetlb=1",
  `glibc.malloc.top_pad=${8 * 2 ** 20}`,
  `glibc.malloc.mmap_threshold=${NEVER}`,
  `glibc.malloc.trim_threshold=${NEVER}`,
].join(":");

/**
 * What goes into the environment of a tool for that; what another program has set for this process holds for its tools,
 * too.
 */
function toolMemory(env: Readonly<Record<string, string | undefined>> = process.env): Record<string, string> {
  return env["GLIBC_TUNABLES"] === undefined ? { GLIBC_TUNABLES: TUNABLES } : {};
}
