import { COMMANDS } from "./commands/table.ts";
import type { Context } from "./frame/context.ts";
import { CommandFailure, fileErrorsInWords, UsageError } from "./frame/errors.ts";
import { commandUsage, readCommandLine } from "./frame/program.ts";
import { plain } from "./frame/terminal.ts";
import { printable, printableStyled } from "./frame/text.ts";
import { version } from "./version.ts";

export interface CommandLineIO extends Context {
  /** As the user calls it: `fairlead`, or `kubectl fairlead`. */
  readonly program: string;
  /** Writes to standard error. */
  readonly err: (text: string) => void;
}

/** Carries out a command line; resolves to the exit code (EXIT_CODES). */
export async function runCommandLine(argv: readonly string[], terminal: CommandLineIO): Promise<number> {
  const io = withPrintable(terminal);
  const request = readCommandLine(argv, { name: io.program, version, commands: COMMANDS });
  if (request.kind === "print") {
    io.out(request.text);
    return 0;
  }
  if (request.kind === "usage-error") {
    io.err(request.message);
    return 2;
  }
  const { readStandardInput: read } = io;
  let input: Promise<Uint8Array> | undefined;
  const readStandardInput = () => {
    input ??= read();
    return input;
  };
  try {
    return await request.command.run(request.arguments, request.texts, { ...io, readStandardInput });
  } catch (error) {
    if (error instanceof UsageError) {
      io.err(`${error.message}\n${commandUsage(io.program, request.command)}`);
      return 2;
    }
    io.err(`${messageOf(error)}\n`);
    return 3;
  }
}

/** All that is printed quotes files, objects and what answers on nodes, which may have anything in them. */
function withPrintable(io: CommandLineIO): CommandLineIO {
  const onOut = io.style === plain ? printable : printableStyled;
  return {
    ...io,
    out: (text) => io.out(onOut(text)),
    err: (text) => io.err(printable(text)),
    warn: (line) => io.warn(printable(line)),
  };
}

/** A failure says what the operator needs; anything else is a mistake of ours, whose place is of use. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error instanceof CommandFailure ? fileErrorsInWords(error.message) : (error.stack ?? error.message);
}
