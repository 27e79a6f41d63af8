import type { Command } from "../frame/command.ts";
import type { OptionSpec } from "../frame/options.ts";

/** What a shell may offer where a value is wanted. */
export type ValueFacts =
  | { readonly kind: "words"; readonly words: readonly string[] }
  | { readonly kind: "path" | "none" };

/** An option as the scripts need it. */
export interface OptionFacts {
  readonly name: string;
  readonly short?: string;
  /** One line without the default. */
  readonly help: string;
  /** Absent: a switch. */
  readonly value?: ValueFacts & { readonly placeholder: string };
  readonly repeatable: boolean;
}

/** A command as the scripts need it. */
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
