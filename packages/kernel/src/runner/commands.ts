import { nextTurn } from "@fairlead/base";
import { commandText } from "@fairlead/netfilter";
import type { Argv, Runner, RunResult } from "./runner.ts";

/** Gives the event loop its turn. */
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
