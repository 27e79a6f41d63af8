import type { CommandCompletion, OptionFacts, ValueFacts } from "./facts.ts";

/** A completion script for fish. */
export function fishCompletion(commands: readonly CommandCompletion[]): string {
  const first = commands.map(({ name, summary }) => line("__fish_use_subcommand", `-a ${name} -d ${quote(summary)}`));
  const rest = commands.flatMap(({ name, options, arguments: args }) => {
    const here = `__fish_seen_subcommand_from ${name}`;
    return [...options.map((one) => line(here, optionText(one))), ...args.map((one) => line(here, offer(one)))];
  });
  return ["# fish completion of fairlead", "complete -c fairlead -f", ...first, ...rest.filter((one) => one !== "")]
    .join("\n")
    .concat("\n");
}

function line(when: string, what: string): string {
  return what === "" ? "" : `complete -c fairlead -n '${when}' ${what}`;
}

function optionText({ name, short, help, value }: OptionFacts): string {
  const parts = [`-l ${name}`, ...(short === undefined ? [] : [`-s ${short}`]), `-d ${quote(help)}`];
  if (value === undefined) return parts.join(" ");
  // -x: a value is wanted, and no file is one.
  return [...parts, value.kind === "path" ? "-r" : "-x", offer(value)].join(" ").trimEnd();
}

function offer(value: ValueFacts): string {
  if (value.kind === "words") return `-a ${quote(value.words.join(" "))}`;
  return value.kind === "path" ? "-F" : "";
}

function quote(text: string): string {
  return `'${text.replaceAll(/[\\']/g, "\\$&")}'`;
}
