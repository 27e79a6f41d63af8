import type { CommandCompletion, OptionFacts, ValueFacts } from "./facts.ts";

/** A completion script for zsh: to be sourced, or put into a folder of fpath as _fairlead. */
export function zshCompletion(commands: readonly CommandCompletion[]): string {
  const described = commands.map(({ name, summary }) => `    ${quote(`${name}:${summary}`)}\n`);
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
  const specs = [...options.flatMap(optionSpecs), ...args.map((one) => quote(`:${escaped(one.name)}:${action(one)}`))];
  return `    ${name}) _arguments ${specs.join(" ")} ;;\n`;
}

function optionSpecs({ name, short, help, value, repeatable }: OptionFacts): string[] {
  const names = [`--${name}`, ...(short === undefined ? [] : [`-${short}`])];
  return names.map((one) => {
    const before = repeatable ? "*" : `(${names.join(" ")})`;
    // A long option takes its value behind = as well.
    const joint = value === undefined || !one.startsWith("--") ? "" : "=";
    const values = value === undefined ? "" : `:${escaped(value.placeholder)}:${action(value)}`;
    return quote(`${before}${one}${joint}[${escaped(help)}]${values}`);
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

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
