/** `completion`: a script for each shell. */

import { SHELLS } from "../facts/clusters.ts";
import type { Command, CommandInput, ExitCode, OptionSpecs } from "../frame/command.ts";
import { type CommandCompletion, completionsOf, type OptionFacts, type ValueFacts } from "../frame/completion.ts";
import type { Context } from "../frame/context.ts";
import { UsageError } from "../frame/errors.ts";

const SCRIPTS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const;

export function completionRun(commands: readonly Command[]) {
  return async ({ arguments: [name] }: CommandInput<OptionSpecs>, { out }: Context): Promise<ExitCode> => {
    const shell = SHELLS.find((one) => one === name);
    if (shell === undefined) throw new UsageError(`${JSON.stringify(name)}: must be ${SHELLS.join(", ")}`);
    out(SCRIPTS[shell](completionsOf(commands)));
    return 0;
  };
}

/** A completion script for bash 4.4 or newer; needs nothing alongside it. */
function bashCompletion(commands: readonly CommandCompletion[]): string {
  return `# bash completion of fairlead
_fairlead() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD - 1]}"
  COMPREPLY=()
  # --name=value comes as three words.
  if [[ $cur == = ]]; then cur=""; elif [[ $prev == = ]]; then prev="\${COMP_WORDS[COMP_CWORD - 2]}"; fi
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "${[...commands.map(({ name }) => name), "--help", "--version"].join(" ")}" -- "$cur")
    return
  fi
  case "\${COMP_WORDS[1]} $prev" in
${commands.flatMap(valueCases).join("")}  esac
  case "\${COMP_WORDS[1]}" in
${commands.map(optionCase).join("")}  esac
}
complete -F _fairlead fairlead
`;
}

function valueCases({ name, options }: CommandCompletion): string[] {
  return options.flatMap(({ name: long, short, value }) => {
    if (value === undefined) return [];
    const patterns = [`"${name} --${long}"`, ...(short === undefined ? [] : [`"${name} -${short}"`])];
    return [`    ${patterns.join(" | ")}) ${bashOffer(value)}return ;;\n`];
  });
}

function optionCase({ name, options, arguments: args }: CommandCompletion): string {
  const [first] = args;
  const words = options.map(({ name: long }: OptionFacts) => `--${long}`).join(" ");
  const argument =
    first === undefined || first.kind === "none" ? "" : `[[ $cur != -* ]] && { ${bashOffer(first)}return; }; `;
  return `    ${name}) ${argument}mapfile -t COMPREPLY < <(compgen -W "${words}" -- "$cur") ;;\n`;
}

/** Shell text that fills COMPREPLY, closed with a semicolon; "" where the value is unknown. */
function bashOffer(value: ValueFacts): string {
  if (value.kind === "words") return `mapfile -t COMPREPLY < <(compgen -W "${value.words.join(" ")}" -- "$cur"); `;
  return value.kind === "path" ? `compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); ` : "";
}

/** A completion script for zsh: to be sourced, or put into a folder of fpath as _fairlead. */
function zshCompletion(commands: readonly CommandCompletion[]): string {
  const described = commands.map(({ name, summary }) => `    ${zshQuote(`${name}:${summary}`)}\n`);
  return `#compdef fairlead
_fairlead() {
  local -a commands
  commands=(
${described.join("")}  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  shift words
  ((CURRENT--))
  case $words[1] in
${commands.map(commandCase).join("")}  esac
}
compdef _fairlead fairlead
`;
}

function commandCase({ name, options, arguments: args }: CommandCompletion): string {
  const specs = [
    ...options.flatMap(optionSpecs),
    ...args.map((one) => zshQuote(`:${escaped(one.name)}:${action(one)}`)),
  ];
  return `    ${name}) _arguments ${specs.join(" ")} ;;\n`;
}

function optionSpecs({ name, short, help, value, repeatable }: OptionFacts): string[] {
  const names = [`--${name}`, ...(short === undefined ? [] : [`-${short}`])];
  return names.map((one) => {
    const before = repeatable ? "*" : `(${names.join(" ")})`;
    // A long option takes its value behind = as well.
    const joint = value === undefined || !one.startsWith("--") ? "" : "=";
    const values = value === undefined ? "" : `:${escaped(value.placeholder)}:${action(value)}`;
    return zshQuote(`${before}${one}${joint}[${escaped(help)}]${values}`);
  });
}

function action(value: ValueFacts): string {
  if (value.kind === "words") return `(${value.words.join(" ")})`;
  return value.kind === "path" ? "_files" : " ";
}

/** Colons and brackets part the fields of a spec. */
function escaped(text: string): string {
  return text.replaceAll(/[:[\]\\]/g, "\\$&");
}

function zshQuote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function fishCompletion(commands: readonly CommandCompletion[]): string {
  const first = commands.map(({ name, summary }) =>
    line("__fish_use_subcommand", `-a ${name} -d ${fishQuote(summary)}`),
  );
  const rest = commands.flatMap(({ name, options, arguments: args }) => {
    const here = `__fish_seen_subcommand_from ${name}`;
    return [...options.map((one) => line(here, optionText(one))), ...args.map((one) => line(here, fishOffer(one)))];
  });
  return ["# fish completion of fairlead", "complete -c fairlead -f", ...first, ...rest.filter((one) => one !== "")]
    .join("\n")
    .concat("\n");
}

function line(when: string, what: string): string {
  return what === "" ? "" : `complete -c fairlead -n '${when}' ${what}`;
}

function optionText({ name, short, help, value }: OptionFacts): string {
  const parts = [`-l ${name}`, ...(short === undefined ? [] : [`-s ${short}`]), `-d ${fishQuote(help)}`];
  if (value === undefined) return parts.join(" ");
  // -x: a value is wanted, and no file is one.
  return [...parts, value.kind === "path" ? "-r" : "-x", fishOffer(value)].join(" ").trimEnd();
}

function fishOffer(value: ValueFacts): string {
  if (value.kind === "words") return `-a ${fishQuote(value.words.join(" "))}`;
  return value.kind === "path" ? "-F" : "";
}

function fishQuote(text: string): string {
  return `'${text.replaceAll(/[\\']/g, "\\$&")}'`;
}
