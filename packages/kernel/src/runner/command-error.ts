import { errorText } from "@fairlead/base";
import type { Argv } from "./runner.ts";

/**
 * exit: ended with a code other than 0. signal: another process killed it. timeout: killed by us after its time.
 * aborted: killed by the caller's signal. stopped: another process had stopped it (SIGSTOP), and we killed it for that.
 * not-found: there is no such program that may be run. output: it wrote more than was asked for. start: it could not be
 * started for another reason, or its input failed.
 */
export type FailureReason = "exit" | "signal" | "timeout" | "stopped" | "aborted" | "not-found" | "output" | "start";

export interface CommandFailure {
  readonly argv: Argv;
  readonly reason: FailureReason;
  readonly exitCode?: number | undefined;
  /** Name of the signal, `SIGKILL`. */
  readonly signal?: string | undefined;
  readonly stderr?: string | undefined;
  readonly stdout?: string | undefined;
  /** Only `timeout` and `stopped`: the milliseconds it had. */
  readonly timeoutMs?: number | undefined;
  readonly cause?: unknown;
}

/** A process that did not do what it was asked for. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly argv: Argv;
  readonly reason: FailureReason;
  /** Absent unless the process ended by itself. */
  readonly exitCode: number | undefined;
  /** Absent unless a signal ended it. */
  readonly signal: string | undefined;
  /** Trimmed. */
  readonly stderr: string;
  /** What it had printed, of `run`: a batch may fail in one of its lines only. */
  readonly stdout: string;
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
