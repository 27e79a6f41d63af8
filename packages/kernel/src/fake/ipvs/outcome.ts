import { CommandError } from "../../runner/command-error.ts";
import type { Argv, Input } from "../../runner/runner.ts";
import { lines } from "../../runner/text.ts";
import { type Faults, killed } from "../faults.ts";

/** What a tool made of one line: taken; told on stderr and skipped; or the end of the process. */
export type LineOutcome = undefined | { readonly skip: string } | { readonly stop: string; readonly exitCode: number };

/** A tool that reads commands line by line, each of them done before the next one is read. */
export interface LineTool {
  take(line: string, number: number): LineOutcome;
  /** Called after the last line. */
  end?(): LineOutcome;
}

/**
 * Runs the fake of a line tool with the faults that were planned: killed after so many lines, or just when all was
 * done.
 *
 * @throws CommandError as the real client does: for a refused line, for skipped ones (exit code 0), and for kills
 */
export async function runLineTool(faults: Faults, argv: Argv, payload: Input, tool: LineTool): Promise<void> {
  const fault = await faults.enter(argv);
  let left = fault?.kind === "kill" ? (fault.transactions ?? 0) : Number.POSITIVE_INFINITY;
  const skipped: string[] = [];
  const heed = (outcome: LineOutcome) => {
    if (outcome === undefined) return;
    if ("skip" in outcome) skipped.push(outcome.skip);
    else throw ended(argv, outcome.exitCode, [...skipped, outcome.stop]);
  };
  let number = 0;
  for await (const line of lines(pieces(payload))) {
    if (left-- <= 0) throw killed(argv);
    heed(tool.take(line, ++number));
  }
  heed(tool.end?.());
  if (fault !== undefined) throw killed(argv);
  if (skipped.length > 0) throw ended(argv, 0, skipped);
}

function ended(argv: Argv, exitCode: number, stderr: readonly string[]): CommandError {
  return new CommandError({ argv, reason: "exit", exitCode, stderr: stderr.join("\n") });
}

async function* pieces(payload: Input): AsyncGenerator<string, void, void> {
  yield* typeof payload === "string" ? [payload] : payload;
}
