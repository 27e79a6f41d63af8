import { configFileOf, formatError, type ParseResult, parseArguments } from "@fairlead/config";
import { version } from "./about/version.ts";

export interface CommandLineIO {
  readonly readFile: (path: string) => Promise<string>;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

/** Exit codes: 0 done or asked to stop, 1 it could not, 2 the command line is invalid. */
export async function runCommandLine(argv: readonly string[], io: CommandLineIO): Promise<number> {
  const parsed = await parseReading(argv, io);
  if (parsed.kind !== "run") return answer(parsed, io);
  // Everything else is loaded when it is needed: --version and wrong flags are answered without it.
  const { runAction } = await import("./start/action.ts");
  return runAction(parsed.config, parsed.warnings, io);
}

/** Parses without blocking: a file may be a pipe that nothing writes to, and signals still have to end the start. */
async function parseReading(argv: readonly string[], io: CommandLineIO): Promise<ParseResult> {
  const path = configFileOf(argv, version);
  const [read] = await Promise.allSettled(path === undefined ? [] : [io.readFile(path)]);
  const readFile = () => {
    if (read?.status === "rejected") throw read.reason;
    return read?.value ?? "";
  };
  return parseArguments(argv, { readFile, version });
}

function answer(parsed: Exclude<ParseResult, { kind: "run" }>, io: CommandLineIO): number {
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
