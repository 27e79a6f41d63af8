import { readFile } from "node:fs/promises";
import {
  type AgentConfig,
  type ControllerParseResult,
  configFileOf,
  formatError,
  type ParseEnvironment,
  type ParseResult,
  parseArguments,
} from "@fairlead/config";
import { version } from "./about/version.ts";

export interface CommandLineIO {
  readonly readFile: (path: string) => Promise<string>;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

/** The process's own. */
export const PROCESS_IO: CommandLineIO = {
  readFile: (path) => readFile(path, "utf8"),
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
};

/** What a command line is answered with; everything else is loaded when it is needed. */
export interface AgentProgram extends Pick<ParseEnvironment, "platform" | "stateDir"> {
  /** Does what the process was started for; resolves to its exit code. */
  load(): Promise<(config: AgentConfig, warnings: readonly string[], io: CommandLineIO) => Promise<number>>;
}

/** Exit codes: 0 done or asked to stop, 1 it could not, 2 the command line is invalid. */
export async function runCommandLine(
  argv: readonly string[],
  io: CommandLineIO,
  program: AgentProgram,
): Promise<number> {
  const parsed = await parseReading(argv, io, program);
  if (parsed.kind !== "run") return answer(parsed, io);
  const run = await program.load();
  return run(parsed.config, parsed.warnings, io);
}

/** Parses without blocking: a file may be a pipe that nothing writes to, and signals still have to end the start. */
async function parseReading(
  argv: readonly string[],
  io: CommandLineIO,
  { platform, stateDir }: AgentProgram,
): Promise<ParseResult> {
  const path = configFileOf(argv, version);
  const [read] = await Promise.allSettled(path === undefined ? [] : [io.readFile(path)]);
  const readFile = () => {
    if (read?.status === "rejected") throw read.reason;
    return read?.value ?? "";
  };
  return parseArguments(argv, {
    readFile,
    version,
    ...(platform && { platform }),
    ...(stateDir !== undefined && { stateDir }),
  });
}

/** @returns the exit code */
export function answer(
  parsed: Exclude<ParseResult | ControllerParseResult, { kind: "run" }>,
  io: Pick<CommandLineIO, "out" | "err">,
): number {
  switch (parsed.kind) {
    case "help":
    case "version":
      io.out(parsed.text);
      return 0;
    case "usage-error":
      io.err(`${parsed.message.trimEnd()}\n`);
      return 2;
    case "invalid":
      for (const error of parsed.errors) io.err(`${formatError(error)}\n`);
      return 1;
  }
}
