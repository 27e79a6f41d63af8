import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import type { Argv, Input } from "./runner.ts";
import { coalesce } from "./text.ts";

export interface ChildSettings {
  readonly env: NodeJS.ProcessEnv;
  /** Milliseconds until it is killed; 0: never. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Written to its standard input; without it that is empty. */
  readonly input?: Input | undefined;
}

/** How a process ended; all is well with exit code 0 and nothing else. */
export interface Ended {
  readonly exitCode?: number | undefined;
  readonly signal?: string | undefined;
  /** Why we killed it. */
  readonly stopped?: Stopped | undefined;
  /** Why it could not be started, or what its input threw. */
  readonly cause?: unknown;
}

export type Stopped = "timeout" | "aborted" | "output";

/** A process from its start to its end. */
export interface Child {
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves once it has ended and its output is closed; never rejects. */
  readonly ended: Promise<Ended>;
  /** Asks it to end, and kills it where it does not. */
  stop(why: Stopped): void;
  kill(): void;
}

/** Milliseconds between asking a process to end and killing it. */
const GRACE_MS = 2_000;

/**
 * Starts a process by Node's own means: a library around them takes several times as long for each, and a start takes dozens.
 *
 * @throws Error when the system has no process left to give
 */
export function startChild([program, ...args]: Argv, settings: ChildSettings): Child {
  // Always a pipe, closed at once where there is no input: the types know no other form that has both outputs.
  const child = spawn(program, args, { env: settings.env, stdio: ["pipe", "pipe", "pipe"] });
  endWithThisProcess(child);
  let stopped: Stopped | undefined;
  let failure: unknown;
  const stop = (why: Stopped) => {
    stopped ??= why;
    child.kill("SIGTERM");
    setTimeout(() => child.kill("SIGKILL"), GRACE_MS).unref();
  };
  const unwatch = watch(settings, stop);
  const ended = new Promise<Ended>((resolve) => {
    const end = (exitCode?: number | null, signal?: string | null) => {
      unwatch();
      resolve({ exitCode: exitCode ?? undefined, signal: signal ?? undefined, stopped, cause: failure });
    };
    child.once("error", (error) => {
      failure ??= error;
      // What never started has no end to wait for.
      if (child.pid === undefined) end();
    });
    child.once("close", end);
  });
  feed(child.stdin, settings.input ?? []).catch((error: unknown) => {
    failure = error;
    // Before its input is closed: it must not take that for the end.
    child.kill("SIGKILL");
    child.stdin.destroy();
  });
  return { stdout: child.stdout, stderr: child.stderr, ended, stop, kill: () => child.kill("SIGKILL") };
}

/** @returns ends the watching */
function watch({ timeoutMs, signal }: ChildSettings, stop: (why: Stopped) => void): () => void {
  const timer = timeoutMs > 0 ? setTimeout(() => stop("timeout"), timeoutMs) : undefined;
  const abort = () => stop("aborted");
  signal?.addEventListener("abort", abort);
  if (signal?.aborted) abort();
  return () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  };
}

/** A process that ends before it has read everything is none of an error here: how it ended says more. */
async function feed(stdin: Writable, input: Input): Promise<void> {
  stdin.on("error", () => {});
  for await (const piece of coalesce(typeof input === "string" ? [input] : input)) {
    if (stdin.destroyed) return;
    if (!stdin.write(piece)) await drained(stdin);
  }
  stdin.end();
}

function drained(stdin: Writable): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stdin.off("drain", done);
      stdin.off("close", done);
      resolve();
    };
    stdin.on("drain", done);
    stdin.on("close", done);
  });
}

const living = new Set<ChildProcess>();

/** Nothing that this process started outlives it: an `ip monitor` would. */
function endWithThisProcess(child: ChildProcessWithoutNullStreams): void {
  if (living.size === 0) process.on("exit", killLiving);
  living.add(child);
  child.once("close", () => {
    living.delete(child);
    if (living.size === 0) process.off("exit", killLiving);
  });
}

function killLiving(): void {
  for (const child of living) child.kill("SIGTERM");
}
