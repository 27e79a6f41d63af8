import type { Command, OptionSpec } from "./frame/command.ts";
import { EXIT_CODES } from "./frame/errors.ts";
import { usageWords } from "./frame/program.ts";

/** The reference page of all commands (docs/cli.md), made from what help and completion are made of. */
export function referencePage(commands: readonly Command[]): string {
  const contents = commands.map(({ name }) => `[${name}](#fairlead-${name})`).join(", ");
  const shared = sharedOptions(commands);
  return `# Reference of fairlead

<!-- Made by \`pnpm --filter @fairlead/cli run reference\`. -->

What each command is for, with real output, is in [tools.md](tools.md). Every command has \`--help\`, which \`fairlead help COMMAND\` prints as well.

Commands: ${contents}.

Exit codes:

${EXIT_CODES.map(([code, meaning]) => `- ${code}: ${meaning}\n`).join("")}
## Shared options

A command lists its own options and names those of this section that it has; "to" is a range in the order of this section.

${shared.join("")}
${commands.map((command) => section(command, shared)).join("\n")}`;
}

/** The options that at least three commands have with the same words: of each name, the words of most commands. */
function sharedOptions(commands: readonly Command[]): readonly string[] {
  const count = new Map<string, Map<string, number>>();
  for (const [name, option] of commands.flatMap(({ options }) => Object.entries(options))) {
    const texts = count.get(name) ?? new Map<string, number>();
    const text = optionText([name, option]);
    count.set(name, texts.set(text, (texts.get(text) ?? 0) + 1));
  }
  return [...count.values()]
    .map((texts) => [...texts].reduce((most, next) => (next[1] > most[1] ? next : most)))
    .filter(([, times]) => times >= 3)
    .map(([text]) => text);
}

function section(command: Command, shared: readonly string[]): string {
  const { name, summary, description, arguments: args, options, examples, finding } = command;
  const own = Object.entries(options).filter((option) => !shared.includes(optionText(option)));
  const others = Object.keys(options).filter((option) => !own.some(([one]) => one === option));
  const parts = [
    `## fairlead ${name}\n\n${summary}. ${description.replaceAll("\n", " ")}\n`,
    fence("sh", `fairlead ${usageWords(command).join(" ")}\n`),
    ...(finding === undefined ? [] : [`Exit code 1: ${finding}.\n`]),
    [...args.map(({ name: one, help }) => `- \`${one}\`: ${help}\n`), ...own.map(optionText)].join(""),
    others.length === 0 ? "" : `[Shared options](#shared-options): ${ranges(others, shared).join(", ")}.\n`,
    fence("sh", examples.map(({ line, what }) => `# ${what}\n${line}\n`).join("\n")),
  ];
  return parts.filter((part) => part !== "").join("\n");
}

/** Three and more that follow each other in the shared section are one range. */
function ranges(names: readonly string[], shared: readonly string[]): readonly string[] {
  const order = shared.map((text) => text.replace(/^- `--([\w-]+).*$/s, "$1"));
  const runs: string[][] = [];
  for (const name of order.filter((one) => names.includes(one))) {
    const run = runs.at(-1);
    if (run !== undefined && order.indexOf(name) === order.indexOf(run.at(-1) ?? "") + 1) run.push(name);
    else runs.push([name]);
  }
  const code = (name: string) => `\`--${name}\``;
  return runs.flatMap((run) =>
    run.length < 3 ? run.map(code) : [`${code(run[0] ?? "")} to ${code(run.at(-1) ?? "")}`],
  );
}

function optionText([name, { short, placeholder, help, defaultText, repeatable = false }]: [
  string,
  OptionSpec<unknown>,
]): string {
  const value = placeholder === undefined ? "" : ` ${placeholder}`;
  const names = [`\`--${name}${value}\``, ...(short === undefined ? [] : [`\`-${short}\``])].join(", ");
  const more = [
    ...(defaultText === undefined ? [] : [`Default: ${defaultText}.`]),
    ...(repeatable ? ["May be given more than once."] : []),
  ];
  return `- ${names}: ${[help, ...more].join(" ")}\n`;
}

function fence(language: string, text: string): string {
  return `\`\`\`${language}\n${text}\`\`\`\n`;
}
