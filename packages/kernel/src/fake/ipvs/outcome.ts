import { CommandError } from "../../runner/command-error.ts";
import type { Argv } from "../../runner/runner.ts";
import { type Faults, killed } from "../faults.ts";

/** What became of one command: taken; told on stderr and skipped; or the end of the process. */
export type Outcome = undefined | { readonly skip: string } | { readonly stop: string; readonly exitCode: number };

/** What does commands without a transaction, each of them before it takes the next one. */
export interface Executor<Command> {
  /** @param number from 1 */
  take(command: Command, number: number): Outcome;
  /** Called after the last command. */
  end?(): Outcome;
}

/**
 * Does commands with the faults that were planned: killed after so many of them, or just when all was done.
 *
 * @throws CommandError as the real client does: for a refused command, for skipped ones (exit code 0), and for kills
 */
export async function execute<Command>(
  faults: Faults,
  argv: Argv,
  commands: Iterable<Command>,
  { take, end }: Executor<Command>,
): Promise<void> {
  const fault = await faults.enter(argv);
  let left = fault?.kind === "kill" ? (fault.transactions ?? 0) : Number.POSITIVE_INFINITY;
  const skipped: string[] = [];
  const heed = (outcome: Outcome) => {
    if (outcome === undefined) return;
    if ("skip" in outcome) skipped.push(outcome.skip);
    else throw ended(argv, outcome.exitCode, [...skipped, outcome.stop]);
  };
  let number = 0;
  for (const command of commands) {
    if (left-- <= 0) throw killed(argv);
    heed(take(command, ++number));
  }
  heed(end?.());
  if (fault !== undefined) throw killed(argv);
  if (skipped.length > 0) throw ended(argv, 0, skipped);
}

function ended(argv: Argv, exitCode: number, stderr: readonly string[]): CommandError {
  return new CommandError({ argv, reason: "exit", exitCode, stderr: stderr.join("\n") });
}
