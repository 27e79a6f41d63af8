/** What may follow in a command line: the facts that scripts are made of, and kubectl's own completion. */

import type { Command, OptionSpec } from "./command.ts";

/** What kubectl (1.26 and newer) starts to complete `kubectl fairlead`, found on PATH. */
export const COMPLETER = "kubectl_complete-fairlead";

/** Cobra's ShellCompDirective: offer files where there are no words, or never. */
const DIRECTIVES = { files: 0, words: 4 } as const;

/**
 * What `kubectl_complete-fairlead` answers kubectl's own completion: words with their help, and a directive behind
 * them.
 *
 * @param typed what stands behind `kubectl fairlead`
 */
export function kubectlCompletion(commands: readonly CommandCompletion[], typed: readonly string[]): string {
  const { words, files }: Candidates = candidatesFor(commands, typed);
  const lines = words.map(({ word, help }) => (help === "" ? word : `${word}\t${help}`));
  return `${[...lines, `:${files ? DIRECTIVES.files : DIRECTIVES.words}`].join("\n")}\n`;
}

/** What may stand in place of the word that is being typed. */
interface Candidates {
  readonly words: readonly { readonly word: string; readonly help: string }[];
  /** Files as well. */
  readonly files: boolean;
}

const NOTHING: Candidates = { words: [], files: false };

/**
 * What fits a command line, for shells that ask a program and not a script.
 *
 * @param typed the words behind the program's name; the last is the one being typed, perhaps ""
 */
function candidatesFor(commands: readonly CommandCompletion[], typed: readonly string[]): Candidates {
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

/** What a shell may offer where a value is wanted. */
export type ValueFacts =
  | { readonly kind: "words"; readonly words: readonly string[] }
  | { readonly kind: "path" | "none" };

export interface OptionFacts {
  readonly name: string;
  readonly short?: string;
  /** One line without the default. */
  readonly help: string;
  /** Absent: a switch. */
  readonly value?: ValueFacts & { readonly placeholder: string };
  readonly repeatable: boolean;
}

export interface CommandCompletion {
  readonly name: string;
  readonly summary: string;
  /** With --help. */
  readonly options: readonly OptionFacts[];
  readonly arguments: readonly (ValueFacts & { readonly name: string })[];
}

const HELP: OptionFacts = { name: "help", short: "h", help: "Print this text", repeatable: false };

export function completionsOf(commands: readonly Command[]): readonly CommandCompletion[] {
  const own = commands.map(({ name, summary, options, arguments: args }) => ({
    name,
    summary,
    options: [...Object.entries(options).map(([long, spec]) => optionFacts(long, spec)), HELP],
    arguments: args.map((one) => ({ name: one.name, ...offerOf(one) })),
  }));
  const words = commands.map(({ name }) => name);
  const help = { name: HELP.name, summary: "Print the help of a command", options: [HELP] };
  return [...own, { ...help, arguments: [{ name: "command", kind: "words", words }] }];
}

function optionFacts(name: string, spec: OptionSpec<unknown>): OptionFacts {
  const { short, placeholder, help, repeatable = false } = spec;
  return {
    name,
    ...(short === undefined ? {} : { short }),
    help: help.split(/\.(?: |$)/, 1)[0] ?? "",
    ...(placeholder === undefined ? {} : { value: { ...offerOf(spec), placeholder } }),
    repeatable,
  };
}

function offerOf({ choices = [], completes }: Pick<OptionSpec<unknown>, "choices" | "completes">): ValueFacts {
  if (choices.length > 0) return { kind: "words", words: choices };
  return { kind: completes ?? "none" };
}
