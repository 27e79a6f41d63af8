/** Reads a command line, and says what is wrong with it. */

import { Command as Commander, CommanderError, Option } from "commander";
import type { ArgumentSpec, Command, OptionSpec } from "./command.ts";
import { EXIT_CODES } from "./errors.ts";

export type Request =
  | {
      readonly kind: "run";
      readonly command: Command;
      readonly arguments: readonly string[];
      /** Texts of the options given, by long name. */
      readonly texts: ReadonlyMap<string, readonly string[]>;
    }
  /** For standard output. */
  | { readonly kind: "print"; readonly text: string }
  /** For standard error, exit code 2. */
  | { readonly kind: "usage-error"; readonly message: string };

export interface ProgramOptions {
  /** `fairlead`, or `kubectl fairlead` */
  readonly name: string;
  readonly version: string;
  readonly commands: readonly Command[];
}

/** Reads a command line; does nothing else. */
export function readCommandLine(given: readonly string[], options: ProgramOptions): Request {
  const argv = commandFirst(given, options.commands);
  let request: Request | undefined;
  let printed = "";
  const program = createProgram(options, (read) => {
    request = read;
  });
  const silent = { writeOut: (text: string) => (printed += text), writeErr: () => {} };
  for (const one of [program, ...program.commands]) one.exitOverride().configureOutput(silent);
  if (argv.length === 0) return { kind: "print", text: program.helpInformation() };
  const known = options.commands.find(({ name }) => name === argv[0]);
  const unknown = unknownCommand(argv, options);
  try {
    // By itself: with --help behind it commander would print the help of all.
    program.parse(unknown === undefined ? argv : [unknown], { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return { kind: "print", text: printed };
    const usage = known === undefined ? programUsage(options) : commandUsage(options.name, known);
    const hint = optionHint(known?.name ?? "", error);
    return { kind: "usage-error", message: `${error.message.replace(/^error: /, "")}\n${hint}${usage}` };
  }
  return request ?? { kind: "print", text: printed };
}

/** Options that another command of kubectl's or of ours has, and what to use here. */
const HINTS: readonly (readonly [command: RegExp, option: RegExp, hint: string])[] = [
  [
    /./,
    /^(?:--(?:as-uid|as-user-extra|cluster|user|token|v|certificate-authority|client-certificate|client-key|insecure-skip-tls-verify|tls-server-name|cache-dir)\b|-v)/,
    "Of kubectl's global options there are --kubeconfig, --context, --server, --as, --as-group, --request-timeout and -n: " +
      "put the others into a context of the kubeconfig.",
  ],
  [/./, /^(?:-A|--all-namespaces\b)/, "All namespaces are looked at unless -n names one; a SERVICE is NAMESPACE/NAME."],
  [/^doctor$/, /^--node\b/, "doctor looks at this host, or at another node with --on NODE."],
  [
    /^doctor$/,
    /^(?:-f|--file\b)/,
    "doctor looks at a node and not at manifests: fairlead explain -f, plan -f and verify -f do. Of another node: --on NODE.",
  ],
];

function optionHint(command: string, { message }: CommanderError): string {
  const [, option] = /unknown option '([^']*)'/.exec(message) ?? [];
  if (option === undefined) return "";
  const found = HINTS.find(([of, given]) => of.test(command) && given.test(option));
  return found === undefined ? "" : `${found[2]}\n`;
}

/** The word in a command's place that is not a command; behind `help` as well. */
function unknownCommand(argv: readonly string[], { commands }: ProgramOptions): string | undefined {
  const word = argv[0] === HELP ? argv[1] : argv[0];
  if (word === undefined || word === HELP || word.startsWith("-")) return undefined;
  return commands.some(({ name }) => name === word) ? undefined : word;
}

const HELP = "help";

function programUsage({ name, commands }: ProgramOptions): string {
  return `Usage: ${name} COMMAND [options]\nCommands: ${commands.map((command) => command.name).join(", ")}\n`;
}

/** What stands below an error of a command line of the command. */
export function commandUsage(program: string, command: Command): string {
  return `Usage: ${[program, ...usageWords(command)].join(" ")}\nAll options: ${program} ${command.name} --help\n`;
}

/** `explain <target> [options]` */
export function usageWords({ name, arguments: args }: Pick<Command, "name" | "arguments">): readonly string[] {
  return [name, ...args.map(argumentTerm), "[options]"];
}

function createProgram({ name, version, commands }: ProgramOptions, onRun: (request: Request) => void): Commander {
  const program = new Commander(name)
    .description("Shows why a packet to a Kubernetes service goes where it goes: from manifests, a cluster or a node.")
    .version(`Fairlead v${version}`, "--version", "Print the version.")
    .helpOption("-h, --help", "Print this text.")
    .helpCommand(`${HELP} [command]`, "Print the help of a command.")
    .addHelpText("after", `\nExit codes:\n${exitCodes()}`);
  for (const command of commands) program.addCommand(subcommand(name, command, onRun));
  return program;
}

function subcommand(program: string, command: Command, onRun: (request: Request) => void): Commander {
  const texts = new Map<string, string[]>();
  const sub = new Commander(command.name)
    .summary(command.summary)
    .description(`${command.summary}.\n\n${command.description.replaceAll("\n", " ")}`)
    .helpOption("-h, --help", "Print this text.")
    .allowExcessArguments(false)
    .configureHelp({ helpWidth: 110 });
  for (const argument of command.arguments) sub.argument(argumentTerm(argument), argument.help);
  for (const [name, spec] of Object.entries(command.options)) sub.addOption(optionOf(name, spec, texts));
  sub.addHelpText("after", `\nExamples:\n${examples(program, command)}`);
  sub.action((...given: unknown[]) => {
    // The last two are the options and the command itself.
    const args = given.slice(0, -2).filter((one): one is string => typeof one === "string");
    onRun({ kind: "run", command, arguments: args, texts });
  });
  return sub;
}

function argumentTerm({ name, optional = false }: ArgumentSpec): string {
  return optional ? `[${name}]` : `<${name}>`;
}

function optionOf(name: string, spec: OptionSpec<unknown>, texts: Map<string, string[]>): Option {
  const { short, placeholder, choices = [], defaultText } = spec;
  const value = placeholder === undefined ? "" : ` <${placeholder}>`;
  const shown = defaultText === undefined ? spec.help : `${spec.help} Default: ${defaultText}.`;
  const option = new Option(`${short === undefined ? "" : `-${short}, `}--${name}${value}`, shown);
  const keep = (given: string) => {
    // One that ends with = has a text of its own behind it.
    const isChoice = (one: string) => one === given || (one.endsWith("=") && given.startsWith(one));
    if (choices.length > 0 && !choices.some(isChoice)) {
      throw new CommanderError(2, "choice", `--${name}=${given}: must be ${choices.join(" or ")}`);
    }
    texts.set(name, [...(texts.get(name) ?? []), given]);
  };
  if (placeholder !== undefined) return option.argParser(keep);
  // A switch has no parser of its own: its preset text is parsed whenever it is given.
  return option.preset("").argParser(keep);
}

function examples(program: string, { examples: all }: Command): string {
  return all.map(({ line, what }) => `  # ${what}\n  ${line.replace(/^fairlead/, program)}\n`).join("\n");
}

function exitCodes(): string {
  return EXIT_CODES.map(([code, meaning]) => `  ${code}  ${meaning}\n`).join("");
}

/**
 * A command line whose options stand before the command (`--context NAME status`), as kubectl takes them, with the
 * command first. A command line that begins with its command, or has no command, stays as it is.
 */
function commandFirst(argv: readonly string[], commands: readonly Command[]): readonly string[] {
  if (argv[0]?.startsWith("-") !== true) return argv;
  const takeValues = new Set(commands.flatMap(({ options }) => Object.entries(options).flatMap(valueOptions)));
  const isCommand = (word: string) => commands.some(({ name }) => name === word);
  const at = argv.findIndex((word, index) => isCommand(word) && !takeValues.has(argv[index - 1] ?? ""));
  const [command] = at < 0 ? [] : argv.slice(at, at + 1);
  return command === undefined ? argv : [command, ...argv.slice(0, at), ...argv.slice(at + 1)];
}

/** `--namespace`, `-n`: the word behind one of them is its value. */
function valueOptions([name, { short, placeholder }]: [string, Command["options"][string]]): readonly string[] {
  if (placeholder === undefined) return [];
  return short === undefined ? [`--${name}`] : [`--${name}`, `-${short}`];
}
