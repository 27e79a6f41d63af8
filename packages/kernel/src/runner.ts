/** The port through which processes are started, and what fails in them. */

import { errorText, nextTurn } from "@fairlead/base";
import { commandText } from "@fairlead/netfilter";

/** A program and its arguments. Nothing is ever passed through a shell. */
export type Argv = readonly [program: string, ...args: string[]];

/** Text that is written in pieces as the process takes it. */
export type Input = string | Iterable<string> | AsyncIterable<string>;

/** What a process gets, and how long it may take. */
export interface RunOptions {
  /** Standard input; without it the process reads an empty one. */
  readonly input?: Input;
  /** Milliseconds until the process is killed. Default: the runner's. */
  readonly timeoutMs?: number;
  /** Kills the process when aborted. */
  readonly signal?: AbortSignal;
  /** Characters of standard output to accept; more kills the process. Default 16 Mi. `stream` has no limit. */
  readonly maxStdout?: number;
}

/** How long a stream may take. */
export interface StreamOptions {
  /** Milliseconds until the process is killed; 0: never. Default: the runner's. */
  readonly timeoutMs?: number;
  /** Ends the stream with a `CommandError` of reason "aborted". */
  readonly signal?: AbortSignal;
}

/** What a process printed that succeeded. */
export interface RunResult {
  /** All of standard output. */
  readonly stdout: string;
  /** All of standard error. */
  readonly stderr: string;
}

/** How every process of Fairlead is started. Two methods, so that a fake is as small. */
export interface Runner {
  /**
   * Runs a process to its end.
   *
   * @throws CommandError when it cannot be started, exits with another code than 0, is killed, takes too long or says
   * too much
   */
  run(argv: Argv, options?: RunOptions): Promise<RunResult>;
  /**
   * Standard output in pieces of text as they come, with back-pressure (see `lines`). Leaving the loop kills the
   * process.
   *
   * @throws CommandError as `run`, after the last piece
   */
  stream(argv: Argv, options?: StreamOptions): AsyncIterable<string>;
}

/**
 * exit: ended with a code other than 0. signal: another process killed it. timeout: killed by us after its time.
 * aborted: killed by the caller's signal. stopped: another process had stopped it (SIGSTOP), and we killed it for that.
 * not-found: there is no such program that may be run. output: it wrote more than was asked for. start: it could not be
 * started for another reason, or its input failed.
 */
export type FailureReason = "exit" | "signal" | "timeout" | "stopped" | "aborted" | "not-found" | "output" | "start";

/** How a process failed. */
export interface CommandFailure {
  /** The program and its arguments. */
  readonly argv: Argv;
  /** Why it counts as failed. */
  readonly reason: FailureReason;
  /** Absent unless the process ended by itself. */
  readonly exitCode?: number | undefined;
  /** Name of the signal, `SIGKILL`. */
  readonly signal?: string | undefined;
  /** What it wrote to standard error. */
  readonly stderr?: string | undefined;
  /** What it wrote to standard output. */
  readonly stdout?: string | undefined;
  /** Only `timeout` and `stopped`: the milliseconds it had. */
  readonly timeoutMs?: number | undefined;
  /** The error of Node or of the input, where there is one. */
  readonly cause?: unknown;
}

/** A process that did not do what it was asked for. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  /** The program and its arguments. */
  readonly argv: Argv;
  /** Why it counts as failed. */
  readonly reason: FailureReason;
  /** Absent unless the process ended by itself. */
  readonly exitCode: number | undefined;
  /** Absent unless a signal ended it. */
  readonly signal: string | undefined;
  /** Trimmed. */
  readonly stderr: string;
  /** What it had printed, of `run`: a batch may fail in one of its lines only. */
  readonly stdout: string;
  /** Whether its time was up (`reason` is `timeout`). */
  readonly timedOut: boolean;

  constructor(failure: CommandFailure) {
    super(describe(failure), failure.cause === undefined ? undefined : { cause: failure.cause });
    this.argv = failure.argv;
    this.reason = failure.reason;
    this.exitCode = failure.exitCode;
    this.signal = failure.signal;
    this.stderr = (failure.stderr ?? "").trim();
    this.stdout = failure.stdout ?? "";
    this.timedOut = failure.reason === "timeout";
  }
}

export type Turn = () => Promise<void>;

/** Milliseconds that a tool may take over its commands: a full sync of a large cluster on a slow machine. */
const TIMEOUT = 600_000;

/** Runs a tool that reads its commands from standard input, one a line; they are rendered while it reads. */
export function runCommands<Command>(
  runner: Runner,
  argv: Argv,
  commands: Iterable<Command>,
  render: (command: Command) => string,
  turn: Turn = nextTurn,
): Promise<RunResult> {
  return runner.run(argv, { input: commandText(commands, render, turn), timeoutMs: TIMEOUT });
}

/** Puts items together from lines. */
interface LineReader<T> {
  /** @returns the item that this line shows to be complete */
  push(line: string): T | undefined;
  /** @returns the last item */
  end(): T | undefined;
}

/** The items of a listing, each as soon as it is complete. */
export async function* read<T>(lines: AsyncIterable<string>, reader: LineReader<T>): AsyncGenerator<T, void, void> {
  for await (const line of lines) {
    const item = reader.push(line);
    if (item !== undefined) yield item;
  }
  const last = reader.end();
  if (last !== undefined) yield last;
}

const PIECE = 64 * 1024;

/**
 * Joins small pieces of text to pieces of about 64 Ki characters: one write for each, and never the whole text at once.
 */
export async function* coalesce(input: Iterable<string> | AsyncIterable<string>): AsyncGenerator<string, void, void> {
  let held: string[] = [];
  let size = 0;
  for await (const piece of input) {
    held.push(piece);
    size += piece.length;
    if (size < PIECE) continue;
    yield held.join("");
    held = [];
    size = 0;
  }
  if (size > 0) yield held.join("");
}

/** Lines without their ends of a text that comes in pieces; the last one need not be ended. */
export async function* lines(pieces: Iterable<string> | AsyncIterable<string>): AsyncGenerator<string, void, void> {
  let rest = "";
  for await (const piece of pieces) {
    const parts = (rest + piece).split("\n");
    rest = parts.pop() ?? "";
    yield* parts;
  }
  if (rest !== "") yield rest;
}

function describe(failure: CommandFailure): string {
  const stderr = (failure.stderr ?? "").trim();
  return `${failure.argv.join(" ")}: ${ending(failure)}${stderr === "" ? "" : `: ${stderr}`}`;
}

function ending({ argv, reason, exitCode, signal, timeoutMs, cause }: CommandFailure): string {
  switch (reason) {
    case "exit":
      return `exit code ${exitCode}`;
    case "signal":
      return `killed by ${signal}`;
    case "timeout":
      return `killed after ${timeoutMs} ms`;
    case "stopped":
      return `was stopped (SIGSTOP), did not continue within ${timeoutMs} ms and was killed`;
    case "aborted":
      return "aborted";
    case "not-found":
      return `${argv[0]} is not installed`;
    case "output":
      return "killed: too much output";
    case "start":
      return `failed to run (${errorText(cause)})`;
  }
}
