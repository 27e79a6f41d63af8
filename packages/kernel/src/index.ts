export { CommandError, type CommandFailure, type FailureReason } from "./runner/command-error.ts";
export { createRunner, type ProcessRunnerOptions } from "./runner/process-runner.ts";
export type { Argv, Input, Runner, RunOptions, RunResult, StreamOptions } from "./runner/runner.ts";
export { lines } from "./runner/text.ts";
