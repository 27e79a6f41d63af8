import { formatError, type ParseResult, parseArguments } from "@fairlead/config";
import { version } from "./about/version.ts";

export interface CommandLineIO {
  readonly readFile: (path: string) => string;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

/** Exit codes: 0 done or told to stop, 1 it could not, 2 the command line is not one. */
export async function runCommandLine(argv: readonly string[], io: CommandLineIO): Promise<number> {
  const parsed = parseArguments(argv, { readFile: io.readFile, version });
  if (parsed.kind !== "run") return answer(parsed, io);
  // Everything else is loaded when it is needed: --version and wrong flags are answered without it.
  const { carryOut } = await import("./start/carry-out.ts");
  return carryOut(parsed.config, parsed.warnings, io);
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
