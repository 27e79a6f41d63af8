/** Reads a command line as Kubernetes' pflag does, and writes --help. */
import { Command, CommanderError, Option } from "commander";
import { closest } from "./report.ts";
import type { FlagType } from "./table/scalars.ts";

/** A flag: how it is written, and what --help says about it. */
export interface FlagDefinition {
  /** Without the dashes. */
  readonly name: string;
  readonly type: FlagType;
  readonly help: string;
  /** Shown by --help; absent where the default is empty, false or depends on something. */
  readonly default?: string | undefined;
  /** Known, but not in --help. */
  readonly hidden?: boolean;
}

interface FlagGroup {
  readonly title: string;
  readonly flags: readonly FlagDefinition[];
}

/** Flags by name with their texts in the order given. */
export type GivenFlags = ReadonlyMap<string, readonly [string, ...string[]]>;

export type CommandLine =
  | { readonly kind: "flags"; readonly flags: GivenFlags }
  | { readonly kind: "help"; readonly text: string }
  | { readonly kind: "usage-error"; readonly message: string };

/** A program that takes flags and nothing else. */
export interface Program {
  readonly name: string;
  /** Of --help, below the usage. */
  readonly description: string;
  readonly groups: readonly FlagGroup[];
}

type Flags = ReadonlyMap<string, FlagDefinition>;

function flagsOf(groups: readonly FlagGroup[]): Flags {
  return new Map(groups.flatMap(({ flags }) => flags).map((flag) => [flag.name, flag]));
}

/**
 * Takes the arguments apart as Kubernetes' pflag does. What the flags' texts mean is not looked at.
 *
 * @param argv the arguments only, without node and script
 */
export function readCommandLine(argv: readonly string[], program: Program): CommandLine {
  const flags = flagsOf(program.groups);
  const given = new Map<string, [string, ...string[]]>();
  const command = createCommand(program, (name, text) => {
    const texts = given.get(name);
    if (texts === undefined) given.set(name, [text]);
    else texts.push(text);
  });
  try {
    command.parse(asCommanderTakesIt(argv, flags), { from: "user" });
    return { kind: "flags", flags: given };
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === "commander.helpDisplayed") return { kind: "help", text: command.helpInformation() };
    return { kind: "usage-error", message: usage(error, program.name, flags) };
  }
}

/** Of `--shadow` and `shadow: true`: an agent that ignored them would program the node that it is to look at. */
export const SHADOW_GONE = "to compare what kube-proxy does with the plan, run: fairlead verify --watch";

function usage({ message }: CommanderError, program: string, flags: Flags): string {
  const unknown = /^error: unknown option '--([^=']+)/.exec(message)?.[1];
  const near = unknown === undefined ? undefined : closest(unknown, [...flags.keys()]);
  const gone = unknown?.startsWith("shadow") ? ` (${SHADOW_GONE})` : undefined;
  const hint = gone ?? (near === undefined ? "" : ` (did you mean --${near}?)`);
  const reason = message.replace(/^error: /, "").replace(/^unknown option/, "unknown flag") + hint;
  return `${reason}\n\nUsage: ${program} [flags]\nAll flags: ${program} --help\n`;
}

type Collect = (name: string, text: string) => void;

function createCommand({ name, description, groups }: Program, collect: Collect): Command {
  const command = new Command(name)
    .usage("[flags]")
    .description(description)
    .helpOption("-h, --help", "Print this help, and exit.")
    .allowExcessArguments(false)
    .showSuggestionAfterError(false)
    .exitOverride()
    .configureOutput({ writeOut: () => {}, writeErr: () => {} })
    .configureHelp({ helpWidth: 110, optionTerm: ({ flags }) => flags.replace(" <bool>", "") });
  for (const { title, flags } of groups) {
    for (const flag of flags) command.addOption(optionOf(flag, collect).helpGroup(`${title}:`));
  }
  return command;
}

function optionOf(flag: FlagDefinition, collect: Collect): Option {
  const short = flag.name === "v" ? "-v, " : "";
  const placeholder = flag.type.placeholder.replace(/\[.*/, "") || "bool";
  const text = flag.default === undefined ? flag.help : `${flag.help} (default ${flag.default})`;
  const option = new Option(`${short}--${flag.name} <${placeholder}>`, text);
  option.argParser((text: string) => collect(flag.name, text));
  return option.hideHelp(flag.hidden);
}

/**
 * pflag and commander differ in three things: pflag takes `_` for `-` in names (WordSepNormalizeFunc), its booleans
 * never take the next argument, and `-v=5` is `-v 5`. Empty arguments that are no values are dropped, as kube-proxy
 * does:
 * templates leave them.
 */
function asCommanderTakesIt(argv: readonly string[], flags: Flags): string[] {
  const result: string[] = [];
  let valueFollows = false;
  for (const [index, argument] of argv.entries()) {
    if (valueFollows) {
      result.push(argument);
      valueFollows = false;
      continue;
    }
    if (argument === "--") return [...result, ...argv.slice(index).filter((rest) => rest !== "")];
    if (argument === "") continue;
    const normal = normalized(argument, flags);
    result.push(normal);
    valueFollows = wantsValue(normal, flags);
  }
  return result;
}

function normalized(argument: string, flags: Flags): string {
  if (/^-v[=\d]/.test(argument)) return `--v=${argument.slice(2).replace(/^=/, "")}`;
  const [, name, value] = /^--([^=]+)(=.*)?$/s.exec(argument) ?? [];
  if (name === undefined) return argument;
  const dashed = name.replaceAll("_", "-");
  const bare = flags.get(dashed)?.type.bare;
  return `--${dashed}${value ?? (bare === undefined ? "" : `=${bare}`)}`;
}

function wantsValue(argument: string, flags: Flags): boolean {
  if (argument === "-v") return true;
  return argument.startsWith("--") && !argument.includes("=") && flags.has(argument.slice(2));
}
