import { formatError, type ParseResult, parseArguments } from "@fairlead/config";
import { version } from "./about/version.ts";

export interface CommandLineIO {
  readonly readFile: (path: string) => Promise<string>;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

/** Exit codes: 0 done or asked to stop, 1 it could not, 2 the command line is not one. */
export async function runCommandLine(argv: readonly string[], io: CommandLineIO): Promise<number> {
  const parsed = await parseReading(argv, io);
  if (parsed.kind !== "run") return answer(parsed, io);
  // Everything else is loaded when it is needed: --version and wrong flags are answered without it.
  const { runAction } = await import("./start/action.ts");
  return runAction(parsed.config, parsed.warnings, io);
}

/**
 * Parses without blocking: a file may be a pipe that nothing writes to, and signals have to end the start all the same.
 * What the parser asks for is read, and the parser is asked again.
 */
async function parseReading(argv: readonly string[], io: CommandLineIO): Promise<ParseResult> {
  const read = new Map<string, { readonly text: string } | { readonly error: unknown }>();
  for (;;) {
    let missing: string | undefined;
    const readFile = (path: string) => {
      const known = read.get(path);
      if (known === undefined) missing = path;
      else if ("error" in known) throw known.error;
      return known?.text ?? "";
    };
    const parsed = parseArguments(argv, { readFile, version });
    if (missing === undefined) return parsed;
    const reading = io.readFile(missing);
    read.set(
      missing,
      await reading.then(
        (text) => ({ text }),
        (error: unknown) => ({ error }),
      ),
    );
  }
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
