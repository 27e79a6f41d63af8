import { errorText } from "@fairlead/base";
import type { Argv } from "./runner.ts";

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
