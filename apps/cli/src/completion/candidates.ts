import type { CommandCompletion, OptionFacts, ValueFacts } from "./facts.ts";

/** What may stand in place of the word that is being typed. */
export interface Candidates {
  readonly words: readonly { readonly word: string; readonly help: string }[];
  /** Files as well. */
  readonly files: boolean;
}

const NOTHING: Candidates = { words: [], files: false };

/**
 * What fits a command line, for those who ask a program and not a script.
 *
 * @param typed the words behind the program's name; the last is the one being typed, perhaps ""
 */
export function candidatesFor(commands: readonly CommandCompletion[], typed: readonly string[]): Candidates {
  const current = typed.at(-1) ?? "";
  const { words, files } = everything(commands, typed, current);
  return { words: words.filter(({ word }) => word.startsWith(current)), files };
}

function everything(commands: readonly CommandCompletion[], typed: readonly string[], current: string): Candidates {
  if (typed.length <= 1)
    return { ...NOTHING, words: commands.map(({ name, summary }) => ({ word: name, help: summary })) };
  const command = commands.find(({ name }) => name === typed[0]);
  if (command === undefined) return NOTHING;
  const [, joined] = /^--([a-z-]+)=/.exec(current) ?? [];
  if (joined !== undefined) return valuesOf(optionCalled(command, `--${joined}`), `--${joined}=`);
  const before = optionCalled(command, typed.at(-2) ?? "");
  if (before?.value !== undefined) return valuesOf(before, "");
  return current.startsWith("-") ? optionsOf(command) : argumentsOf(command);
}

function optionCalled({ options }: CommandCompletion, text: string): OptionFacts | undefined {
  return options.find(({ name, short }) => text === `--${name}` || (short !== undefined && text === `-${short}`));
}

function valuesOf(option: OptionFacts | undefined, prefix: string): Candidates {
  return option?.value === undefined ? NOTHING : offered([option.value], prefix, option.value.placeholder);
}

function optionsOf({ options }: CommandCompletion): Candidates {
  return { ...NOTHING, words: options.map(({ name, help }) => ({ word: `--${name}`, help })) };
}

function argumentsOf({ arguments: args }: CommandCompletion): Candidates {
  return offered(args, "", args[0]?.name ?? "");
}

function offered(values: readonly ValueFacts[], prefix: string, help: string): Candidates {
  const words = values.flatMap((value) => (value.kind === "words" ? value.words : []));
  return {
    words: words.map((word) => ({ word: prefix + word, help })),
    files: values.some(({ kind }) => kind === "path"),
  };
}
