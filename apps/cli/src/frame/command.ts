/** What a command is: its facts, its options, and how their texts are read. */

import type { Context } from "./context.ts";
import { UsageError } from "./errors.ts";

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

/** One option of a command: what help, completion and the reference say of it, and how its text is read. */
export interface OptionSpec<T> {
  /** A single letter. */
  readonly short?: string;
  /** What stands for the value in help, `FILE`; absent: the option is a switch. */
  readonly placeholder?: string;
  readonly help: string;
  readonly choices?: readonly string[];
  /** As help shows it. */
  readonly defaultText?: string;
  readonly repeatable?: boolean;
  /** What a shell offers for the value, choices aside. */
  readonly completes?: "path";
  /** @param texts the values in the order given; of a switch one empty text each time */
  readonly read: (texts: readonly string[]) => T;
}

export type OptionSpecs = Readonly<Record<string, OptionSpec<unknown>>>;

/** What a command gets of its options, by their long names. */
export type OptionValues<O extends OptionSpecs> = { readonly [K in keyof O]: ReturnType<O[K]["read"]> };

type Details = Pick<OptionSpec<unknown>, "short" | "completes">;

export function flag(help: string, details: Details = {}): OptionSpec<boolean> {
  return { ...details, help, read: (texts) => texts.length > 0 };
}

/** The last one given counts. */
export function text(
  placeholder: string,
  help: string,
  details: Details & { readonly defaultText?: string } = {},
): OptionSpec<string | undefined> {
  return { ...details, placeholder, help, read: (texts) => texts.at(-1) };
}

/** May be given more than once. */
export function list(placeholder: string, help: string, details: Details = {}): OptionSpec<readonly string[]> {
  return { ...details, placeholder, help, repeatable: true, read: (texts) => texts };
}

export function choice<const T extends string>(
  choices: readonly T[],
  otherwise: T,
  help: string,
  details: Details = {},
): OptionSpec<T> {
  const read = (texts: readonly string[]) => choices.find((one) => one === texts.at(-1)) ?? otherwise;
  return { ...details, placeholder: choices.join("|"), help, choices, defaultText: otherwise, read };
}

/** The value of an option that is a port. */
export function portOf(option: string, text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port >= 1 && port <= 65_535) return port;
  throw new UsageError(`--${option}=${text}: a port is a number from 1 to 65535`);
}

/** The value of an option that is a whole number from 1 on; undefined: it is not given. */
export function numberOf(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= 1 && Number.isSafeInteger(number)) return number;
  throw new UsageError(`--${option}=${text}: must be a whole number from 1 on`);
}
