import type { CommandCompletion, OptionFacts, ValueFacts } from "./facts.ts";

/** A completion script for bash 4.4 or newer; needs nothing alongside it. */
export function bashCompletion(commands: readonly CommandCompletion[]): string {
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
    return [`    ${patterns.join(" | ")}) ${offer(value)}return ;;\n`];
  });
}

function optionCase({ name, options, arguments: args }: CommandCompletion): string {
  const [first] = args;
  const words = options.map(({ name: long }: OptionFacts) => `--${long}`).join(" ");
  const argument =
    first === undefined || first.kind === "none" ? "" : `[[ $cur != -* ]] && { ${offer(first)}return; }; `;
  return `    ${name}) ${argument}mapfile -t COMPREPLY < <(compgen -W "${words}" -- "$cur") ;;\n`;
}

/** Shell text that fills COMPREPLY, closed with a semicolon; "" where the value is unknown. */
function offer(value: ValueFacts): string {
  if (value.kind === "words") return `mapfile -t COMPREPLY < <(compgen -W "${value.words.join(" ")}" -- "$cur"); `;
  return value.kind === "path" ? `compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); ` : "";
}
