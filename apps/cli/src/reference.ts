import type { Command, OptionSpec } from "./frame/command.ts";
import { EXIT_CODES } from "./frame/errors.ts";
import { usageWords } from "./frame/program.ts";

/** The reference page of all commands (docs/cli.md), made from what help and completion are made of. */
export function referencePage(commands: readonly Command[]): string {
  const contents = commands.map(({ name }) => `[${name}](#fairlead-${name})`).join(", ");
  const shared = sharedOptions(commands);
  return `# Reference of fairlead

<!-- Made by \`pnpm --filter @fairlead/cli run reference\`. -->

[tools.md](tools.md) shows what each command is for. Every command has \`--help\`; \`fairlead help COMMAND\` prints the same.

Commands: ${contents}.

Exit codes:

${EXIT_CODES.map(([code, meaning]) => `- ${code}: ${meaning}\n`).join("")}
## Shared options

A command lists its own options and names those of this section that it has; "to" is a range in this order. \`...\` marks options that may be repeated.

${shared.join("")}
${commands.map((command) => section(command, shared, firstWith(commands))).join("\n")}`;
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

/** The first command with an option of these words. */
function firstWith(commands: readonly Command[]): ReadonlyMap<string, string> {
  const all = commands.flatMap(({ name, options }) =>
    Object.entries(options).map((option) => [optionText(option), name] as const),
  );
  return new Map(all.reverse());
}

function section(command: Command, shared: readonly string[], first: ReadonlyMap<string, string>): string {
  const { name, summary, description, arguments: args, options, examples, finding } = command;
  const notShared = Object.entries(options).filter((option) => !shared.includes(optionText(option)));
  const others = Object.keys(options).filter((option) => !notShared.some(([one]) => one === option));
  const own = notShared.filter((option) => first.get(optionText(option)) === name);
  const earlier = Map.groupBy(
    notShared.filter((option) => !own.includes(option)),
    (option) => first.get(optionText(option)),
  );
  const parts = [
    `## fairlead ${name}\n\n${summary}. ${description.replaceAll("\n", " ")}\n`,
    fence("sh", `fairlead ${usageWords(command).join(" ")}\n`),
    ...(finding === undefined ? [] : [`Exit code 1: ${finding}.\n`]),
    [...args.map(({ name: one, help }) => `- \`${one}\`: ${help}\n`), ...own.map(optionText)].join(""),
    ...Array.from(
      earlier,
      ([of, ones]) => `As for [${of}](#fairlead-${of}): ${ones.map(([one]) => `\`--${one}\``).join(", ")}.\n`,
    ),
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
  const value = placeholder === undefined ? "" : ` ${placeholder}${repeatable ? "..." : ""}`;
  const names = [`\`--${name}${value}\``, ...(short === undefined ? [] : [`\`-${short}\``])].join(", ");
  return `- ${names}: ${help}${defaultText === undefined ? "" : ` Default: ${defaultText}.`}\n`;
}

function fence(language: string, text: string): string {
  return `\`\`\`${language}\n${text}\`\`\`\n`;
}
