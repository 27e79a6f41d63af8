import type { Context } from "./context.ts";
import { UsageError } from "./errors.ts";
import type { OptionSpecs, OptionValues } from "./options.ts";

export interface ArgumentSpec {
  /** `SERVICE[:PORT]|ADDRESS:PORT` */
  readonly name: string;
  readonly help: string;
  readonly optional?: boolean;
  readonly choices?: readonly string[];
  readonly completes?: "path";
}

interface Example {
  /** A command line as it is typed, without a prompt. */
  readonly line: string;
  readonly what: string;
}

/** What help, completion and the reference page are made of. */
export interface CommandFacts {
  readonly name: string;
  /** One line without a full stop. */
  readonly summary: string;
  /** What help says alongside that. */
  readonly description: string;
  readonly arguments: readonly ArgumentSpec[];
  readonly options: OptionSpecs;
  readonly examples: readonly Example[];
  /** What exit code 1 means here, where the command looks for something. */
  readonly finding?: string;
}

export interface CommandInput<O extends OptionSpecs> {
  /** As many as the command has at most; those left out are missing at the end. */
  readonly arguments: readonly string[];
  readonly options: OptionValues<O>;
}

/** What a command's module exports as `run`: it resolves to the exit code. */
export type CommandRun<O extends OptionSpecs> = (input: CommandInput<O>, context: Context) => Promise<ExitCode>;

/** 0 done; 1 what was looked for was found: something differs or is wrong. 2 and 3 are the frame's. */
export type ExitCode = 0 | 1;

/** A command: its facts at hand, its code loaded when it is run. */
export interface Command extends CommandFacts {
  readonly run: (
    args: readonly string[],
    texts: ReadonlyMap<string, readonly string[]>,
    context: Context,
  ) => Promise<ExitCode>;
}

export function defineCommand<O extends OptionSpecs>(
  facts: CommandFacts & { readonly options: O },
  load: () => Promise<{ readonly run: CommandRun<O> }>,
): Command {
  return {
    ...facts,
    run: async (args, texts, context) => {
      const [node, on] = [texts.get("node")?.at(-1), texts.get("on")?.at(-1)];
      if (node !== undefined && on !== undefined && node !== on) {
        throw new UsageError(
          `--node=${node}, --on=${on}: two nodes, one's plan and the other's kernel; give --on only`,
        );
      }
      const { run } = await load();
      return run({ arguments: args, options: readOptions(facts.options, texts) }, context);
    },
  };
}

function readOptions<O extends OptionSpecs>(specs: O, texts: ReadonlyMap<string, readonly string[]>): OptionValues<O> {
  const entries = Object.entries(specs).map(([name, spec]) => [name, spec.read(texts.get(name) ?? [])]);
  // Each value is what its own spec reads, which is how OptionValues is defined.
  return Object.fromEntries(entries) as OptionValues<O>;
}
