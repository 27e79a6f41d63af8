/** The options of `pnpm e2e`, and its subcommands. */

import { randomInt } from "node:crypto";
import type { IPFamily } from "@fairlead/core";
import { DEFAULT_KUBERNETES, kubernetesVersion } from "@fairlead/lab/control-plane/programs";
import { modes } from "@fairlead/lab/modes";
import { MAX_NODES } from "@fairlead/lab/provider/netns/ground";
import { messageOf } from "@fairlead/lab/support/processes";
import { Command } from "commander";
import type { SoakSettings } from "../specs/soak.ts";
import { SPEC_PACKAGES, type SpecPackage, SUITES, type Suite } from "../specs/spec.ts";

/** What the command line asks for, checked as far as it can be without looking at the machine. */
export interface RunOptions {
  readonly provider: string;
  readonly cni: readonly string[];
  readonly modes: readonly string[];
  readonly nodes: number;
  readonly families: readonly IPFamily[];
  readonly spec: RegExp | undefined;
  readonly suites: readonly Suite[];
  /** Only specs about this package; undefined: all. */
  readonly subject: SpecPackage | undefined;
  readonly keep: boolean;
  /** Say what would run, and run nothing. */
  readonly list: boolean;
  readonly kubernetes: string;
  /** Undefined: the manifests of the mode. */
  readonly overlay: string | undefined;
  readonly junit: string | undefined;
  /** Add the run to those that docs/tested.md lists. */
  readonly record: boolean;
  /** Of the suite that is one. */
  readonly soak: SoakSettings;
}

/** A wrong value; the message names the option, the value and what would be right. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** As the parser of the command line gives them, by camel-case name. */
export type RawOptions = Readonly<Record<string, string | boolean | undefined>>;

const modeNames: Readonly<Record<string, string>> = Object.fromEntries(modes.map(({ name }) => [name, name]));

const FAMILIES: Readonly<Record<string, readonly IPFamily[]>> = {
  ipv4: ["IPv4"],
  ipv6: ["IPv6"],
  dual: ["IPv4", "IPv6"],
};

export function readOptions(raw: RawOptions): RunOptions {
  const text = (name: string) => {
    const value = raw[name];
    return typeof value === "string" ? value : undefined;
  };
  return {
    provider: text("provider") ?? "netns",
    cni: list("--cni", text("cni") ?? "bridge"),
    modes: list("--mode", text("mode") ?? "iptables").map((mode) => oneOf("--mode", modeNames, mode)),
    nodes: nodeCount(text("nodes") ?? "2"),
    families: oneOf("--ip-family", FAMILIES, text("ipFamily") ?? "dual"),
    spec: pattern(text("spec")),
    suites: suiteList(text("suite"), text("package")),
    subject: subject(text("package")),
    keep: raw["keep"] === true,
    list: raw["list"] === true,
    kubernetes: kubernetesOption(text("kubernetes") ?? DEFAULT_KUBERNETES),
    overlay: text("overlay"),
    junit: text("junit"),
    record: recorded(raw),
    soak: { hours: hours(text("hours") ?? "0.1"), seed: seedOf(text("seed")) },
  };
}

export function pattern(value: string | undefined): RegExp | undefined {
  try {
    return value === undefined ? undefined : new RegExp(value, "i");
  } catch (error) {
    throw new UsageError(`--spec ${value}: ${messageOf(error)}`);
  }
}

export function kubernetesOption(value: string): string {
  try {
    kubernetesVersion(value);
    return value;
  } catch (error) {
    throw new UsageError(`--kubernetes: ${messageOf(error)}`);
  }
}

export interface Actions {
  run(options: RawOptions): Promise<void>;
  down(): Promise<void>;
  binaries(kubernetes: string): Promise<void>;
  /** Counts what packets cost. @param spec as it was written */
  cost(spec: string | undefined): Promise<void>;
  /** Plays kube-proxy and the agent for Windows the same changes under Wine. */
  windows(seed: string | undefined): Promise<void>;
}

/** The suites that have no cluster: guests in QEMU, whose packets' instructions are counted; programs under Wine. */
const COST = "cost";
const WINDOWS = "windows";

/** The command line of `pnpm e2e`. It throws CommanderError instead of ending the process. */
export function commandLine(actions: Actions): Command {
  const program = new Command("pnpm e2e")
    .description("Specs of Fairlead on clusters with a real control plane, real pod networks and a real kernel")
    .option("--provider <name>", "netns, kind or kind-published", "netns")
    .option("--cni <names>", "pod networks, side by side: the folders of lab/src/cni", "bridge")
    .option("--mode <modes>", "iptables, ipvs, nftables, userspace: a cluster for each", "iptables")
    .option("--nodes <number>", "nodes of a cluster", "2")
    .option("--ip-family <family>", "ipv4, ipv6 or dual", "dual")
    .option("--spec <pattern>", "regular expression: only specs whose names match")
    .option("--suite <names>", `${SUITES.join(", ")}; default: services, multi-cni; or cost or windows, by itself`)
    .option("--package <name>", "only specs about this package (pnpm --filter PACKAGE e2e), of all suites")
    .option("--hours <number>", "how long the suite soak lasts", "0.1")
    .option("--seed <number>", "repeats the steps of a soak; default: a new one, which is in the spec's name")
    .option("--list", "says which specs would run, and what each needs")
    .option("--keep", "leaves the cluster running to look around in, until Ctrl-C")
    .option("--kubernetes <version>", "of the control plane", DEFAULT_KUBERNETES)
    .option("--overlay <name>", "kind: the folder of deploy/overlays that Fairlead comes by; default: the mode's")
    .option("--record", "adds a run in which everything passed to docs/tested.md; not with --spec or --package")
    .option("--junit <file>", "where the results go as JUnit XML; default: e2e/.e2e/junit.xml")
    // What stands behind a subcommand is the subcommand's, though the program has an option of that name.
    .enablePositionalOptions()
    .exitOverride()
    .action((options: RawOptions) => {
      if (options["suite"] === COST) return actions.cost(text(options["spec"]));
      return options["suite"] === WINDOWS ? actions.windows(text(options["seed"])) : actions.run(options);
    });

  program
    .command("down")
    .description("removes what earlier runs have left, and ends runs that wait with --keep")
    .action(() => actions.down());

  program
    .command("binaries")
    .description("finds or builds the programs of the control plane and says where they are")
    .option("--kubernetes <version>", "of the control plane", DEFAULT_KUBERNETES)
    .action(({ kubernetes }: { kubernetes: string }) => actions.binaries(kubernetes));
  return program;
}

const MOST_SEED = 2 ** 31 - 1;

/** Run when neither a suite nor a package is named: all but the slow ones. */
const DEFAULT_SUITES: readonly Suite[] = ["services", "multi-cni"];

/** A run of some specs only says nothing of the suite. */
function recorded({ record, spec, package: about }: RawOptions): boolean {
  if (record === true && (spec !== undefined || about !== undefined)) {
    throw new UsageError("--record: only with whole suites; leave out --spec and --package");
  }
  return record === true;
}

function list(option: string, value: string): readonly string[] {
  const names = value.split(",").map((name) => name.trim());
  if (names.includes(""))
    throw new UsageError(`${option} ${JSON.stringify(value)}: give names with commas between them`);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new UsageError(`${option} ${value}: ${twice} is named twice`);
  return names;
}

/** A day at most: what is longer is a service, and no test. */
function hours(value: string): number {
  const found = Number(value);
  if (value.trim() !== "" && found > 0 && found <= 24) return found;
  throw new UsageError(`--hours ${value}: give a number above 0, 24 at most, such as 0.5`);
}

/** One of its own for each run that names none. */
function seedOf(value: string | undefined): number {
  const found = value === undefined ? randomInt(MOST_SEED) : Number(value);
  if (value !== "" && Number.isInteger(found) && found >= 0 && found <= MOST_SEED) return found;
  throw new UsageError(`--seed ${value}: give a whole number from 0 to ${MOST_SEED}`);
}

function nodeCount(value: string): number {
  const nodes = Number(value);
  if (!Number.isInteger(nodes) || nodes < 2 || nodes > MAX_NODES) {
    throw new UsageError(`--nodes ${value}: give a number from 2 to ${MAX_NODES}`);
  }
  return nodes;
}

function oneOf<T>(option: string, known: Readonly<Record<string, T>>, value: string): T {
  const found = Object.hasOwn(known, value) ? known[value] : undefined;
  if (found === undefined) throw new UsageError(`${option} ${value}: give one of ${Object.keys(known).join(", ")}`);
  return found;
}

/** A package's specs are few, so that the slow ones are among them. */
function suiteList(value: string | undefined, ofPackage: string | undefined): readonly Suite[] {
  if (value === undefined) return ofPackage === undefined ? DEFAULT_SUITES : SUITES;
  return list("--suite", value).map((name) => oneOf("--suite", byName(SUITES), name));
}

function subject(value: string | undefined): SpecPackage | undefined {
  return value === undefined ? undefined : oneOf("--package", byName(SPEC_PACKAGES), value);
}

function byName<T extends string>(names: readonly T[]): Readonly<Record<string, T>> {
  return Object.fromEntries(names.map((name) => [name, name]));
}

function text(value: RawOptions[string]): string | undefined {
  return typeof value === "string" ? value : undefined;
}
