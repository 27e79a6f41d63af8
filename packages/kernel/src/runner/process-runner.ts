import { type Child, type Ended, startChild } from "./child.ts";
import { CommandError, type FailureReason } from "./command-error.ts";
import type { Argv, Input, Runner, RunOptions, RunResult, StreamOptions } from "./runner.ts";
import { searchPath } from "./search-path.ts";

export interface ProcessRunnerOptions {
  /** Put before each argv, such as `NetworkNamespace.argvPrefix`. */
  readonly prefix?: readonly string[];
  /** Beside the environment of this process; `LC_ALL=C` is always set. */
  readonly env?: Readonly<Record<string, string>>;
  /** Milliseconds a process may take when its call does not say. Default 60,000. */
  readonly timeoutMs?: number;
}

const MAX_STDOUT = 16 * 1024 * 1024;
const MAX_STDERR = 1024 * 1024;

/** Runs real processes. */
export function createRunner(options: ProcessRunnerOptions = {}): Runner {
  const start = (argv: Argv, call: RunOptions & StreamOptions) => new Process(argv, options, call);
  return {
    run: (argv, call = {}) => runToEnd(start(argv, call), call.maxStdout ?? MAX_STDOUT),
    stream: (argv, call = {}) => streamOutput(() => start(argv, call)),
  };
}

/** One call: the process, and how its failure is told. */
class Process {
  readonly #argv: Argv;
  readonly #timeoutMs: number;
  readonly child: Child;

  /** @throws CommandError when it cannot be started */
  constructor(argv: Argv, options: ProcessRunnerOptions, call: RunOptions & StreamOptions) {
    this.#argv = withPrefix(options.prefix ?? [], argv);
    this.#timeoutMs = call.timeoutMs ?? options.timeoutMs ?? 60_000;
    const env = { ...process.env, ...options.env, LC_ALL: "C", PATH: searchPath() };
    const { signal, input }: { readonly signal?: AbortSignal; readonly input?: Input } = call;
    try {
      this.child = startChild(this.#argv, { env, timeoutMs: this.#timeoutMs, signal, input });
    } catch (cause) {
      throw this.#error({ cause }, "");
    }
  }

  /** @throws CommandError unless it ended well */
  async end(stderr: Promise<string>): Promise<void> {
    const ended = await this.child.ended;
    if (ended.exitCode !== 0 || ended.stopped !== undefined || ended.cause !== undefined) {
      throw this.#error(ended, await stderr);
    }
  }

  #error(ended: Ended, stderr: string): CommandError {
    const reason = reasonOf(ended, stderr);
    return new CommandError({ argv: this.#argv, reason, ...ended, stderr, timeoutMs: this.#timeoutMs });
  }
}

async function runToEnd(process: Process, maxStdout: number): Promise<RunResult> {
  const { child } = process;
  const stdout = collect(child.stdout, maxStdout, () => child.stop("output"));
  const stderr = collect(child.stderr, MAX_STDERR, () => child.stop("output"));
  await process.end(stderr);
  return { stdout: await stdout, stderr: await stderr };
}

async function* streamOutput(start: () => Process): AsyncGenerator<string, void, void> {
  const process = start();
  const { child } = process;
  const stderr = collect(child.stderr, MAX_STDERR, () => child.stop("output"));
  let read = false;
  try {
    child.stdout.setEncoding("utf8");
    for await (const piece of child.stdout) yield String(piece);
    read = true;
  } finally {
    if (!read) child.kill();
    await child.ended;
  }
  await process.end(stderr);
}

/** The text of a stream up to its end, or as far as it came; `tooMuch` is called when it has more characters than `most`. */
function collect(stream: Child["stdout"], most: number, tooMuch: () => void): Promise<string> {
  let text = "";
  stream.setEncoding("utf8");
  stream.on("data", (piece: string) => {
    if (text.length > most) return;
    text += piece;
    if (text.length > most) tooMuch();
  });
  return new Promise((resolve) => {
    stream.once("error", () => resolve(text));
    stream.once("close", () => resolve(text));
  });
}

function reasonOf({ stopped, cause, exitCode, signal }: Ended, stderr: string): FailureReason {
  if (stopped !== undefined) return stopped;
  // EACCES: not found either, and a folder of PATH may not be looked into.
  if (cause instanceof Error && "code" in cause && (cause.code === "ENOENT" || cause.code === "EACCES")) {
    return "not-found";
  }
  if (cause !== undefined) return "start";
  // nsenter, env and their like say so themselves when what they should run is not there.
  if (exitCode === 127 && stderr.includes("No such file or directory")) return "not-found";
  if (exitCode === 126 && stderr.includes("Permission denied")) return "not-found";
  return signal === undefined ? "exit" : "signal";
}

function withPrefix(prefix: readonly string[], argv: Argv): Argv {
  const [first, ...rest] = [...prefix, ...argv];
  return first === undefined ? argv : [first, ...rest];
}
