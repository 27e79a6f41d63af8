/** `diff`: what differs between two rule sets, plans, clusters or nodes. */

import { readFile, stat } from "node:fs/promises";
import { errorText, familyOf, isLoopback, toEnd } from "@fairlead/base";
import type { ClusterView, IPFamily } from "@fairlead/core";
import {
  compareNftables,
  compareTraffic,
  dryRun,
  type Finding,
  isProxyChain,
  type KernelState,
  type Mode,
  savedRules,
  type TrafficChange,
  type TrafficDifference,
  type TrafficOutcome,
  waysText,
} from "@fairlead/inspect";
import { compareRuleSets, RuleParseError, type RuleSetDifference } from "@fairlead/netfilter";
import type { NftTable } from "@fairlead/netfilter/nft";
import type { Environment } from "@fairlead/trace";
import type { diffOptions } from "../facts/plans.ts";
import type { CommandInput, ExitCode } from "../frame/command.ts";
import type { Context } from "../frame/context.ts";
import { CommandFailure, UsageError } from "../frame/errors.ts";
import { print } from "../frame/output.ts";
import type { Style } from "../frame/terminal.ts";
import { demandReadable } from "../inputs/agent.ts";
import { demandServices, plansIn } from "../inputs/names.ts";
import { plannedNode } from "../inputs/planned.ts";
import { openKernel } from "../node/access.ts";
import { hasCounters, isPlanText, plannedState, stateOfParts } from "../node/rules.ts";

export async function run(
  { arguments: [a = "", b = ""], options }: CommandInput<typeof diffOptions>,
  context: Context,
): Promise<ExitCode> {
  const family: IPFamily = options.family === "ipv4" ? "IPv4" : "IPv6";
  // The node whose kernel is compared is the one that is planned.
  const values = {
    ...options,
    node: options.node ?? options.on,
    here: options.on === undefined && [a, b].includes(NODE),
  };
  const live = [a, b].includes(NODE) ? await readSide(NODE, family, values, context) : undefined;
  const side = async (argument: string, mode?: (typeof options)["to-mode"]) =>
    argument === NODE && live !== undefined
      ? live
      : readSide(argument, family, values, context, { mode, kernel: live?.state });
  const before = await side(a);
  const after = await side(b, options["to-mode"]);
  demandServices(
    options.namespace,
    [before, after].flatMap(({ of }) => of ?? []),
  );
  const traffic = await context.progress("tracing packets through both", async () => {
    const planned = before.planned === after.planned ? undefined : before.planned ? "before" : "after";
    return compareTraffic(before.state, after.state, family, nodeAddress(family, before, after), planned);
  });
  const rules = options["traffic-only"] ? [] : differentRules(before, after);
  const tables = options["traffic-only"] ? [] : differentTables(before, after);
  const data = { family, traffic: trafficData(traffic), rules, tables };
  await print(options.output, data, () => diffText(traffic, { rules, tables }, context.style), context);
  return traffic.changes.length + rules.length + tables.length > 0 ? 1 : 0;
}

/** kube-proxy notices by it that rules were flushed. */
const CANARY = "KUBE-PROXY-CANARY";

function nodeAddress(family: IPFamily, ...sides: readonly Side[]): string | undefined {
  for (const { state } of sides) {
    for (const address of state.environment.localAddresses ?? []) {
      if (familyOf(address) !== family || isLoopback(address) || address.startsWith("fe80:")) continue;
      return address;
    }
  }
  return undefined;
}

/** A plan says nothing of other programs' chains, nor of what kubelet and kube-proxy only look after. */
function differentRules(before: Side, after: Side): readonly RuleSetDifference[] {
  const plans = before.planned || after.planned;
  const chains = (_table: string, chain: string) => !plans || (isProxyChain(chain) && chain !== CANARY);
  return compareRuleSets(before.state.ruleSet, after.state.ruleSet, { chains });
}

function trafficData({ compared, changes, masqueraded }: TrafficDifference) {
  return {
    compared,
    masqueraded,
    changes: changes.map(({ destination, from, before, after }) => {
      return { destination, from, before: fateData(before), after: fateData(after) };
    }),
  };
}

type Options = CommandInput<typeof diffOptions>["options"];

/** The argument that means the kernel of a node. */
const NODE = "node";

interface DiffedNode {
  /** This host's kernel is one of the two. */
  readonly here: boolean;
}

interface PlannedSettings {
  /** Default: the one of the options. */
  readonly mode?: Mode | undefined;
  /** What it is compared with; default: another plan, or a text. */
  readonly kernel?: KernelState | undefined;
}

interface Side {
  /** It is what an agent would write, with no rules of other programs alongside it. */
  readonly planned: boolean;
  readonly state: KernelState;
  readonly of?: ClusterView;
}

/** What an argument of diff means. */
async function readSide(
  argument: string,
  family: IPFamily,
  options: Options & DiffedNode,
  context: Context,
  { mode, kernel }: PlannedSettings = {},
): Promise<Side> {
  const settings = { mode, kernel };
  if (argument === "cluster") return plannedSide([], family, options, context, settings);
  if (argument === NODE) {
    demandAll(options);
    return liveSide(family, options, context);
  }
  const text = await rulesIn(argument);
  if (text !== undefined) demandAll(options);
  return text === undefined
    ? plannedSide([argument], family, options, context, settings)
    : textSide(argument, text, family, options);
}

function demandAll({ namespace }: Options): void {
  if (namespace === undefined) return;
  throw new UsageError("--namespace: only for manifests and the word cluster; fairlead verify -n compares a kernel");
}

/** Undefined: it is a folder, or a file without a table of rules, so manifests. */
async function rulesIn(path: string): Promise<string | undefined> {
  try {
    if ((await stat(path)).isDirectory()) return undefined;
    const text = await readFile(path, "utf8");
    return /^\*(?:nat|filter|mangle|raw|security)$/m.test(text) || isPlanText(text) ? text : undefined;
  } catch (error) {
    throw new CommandFailure(`${path}: ${errorText(error)}`, { cause: error });
  }
}

async function plannedSide(
  file: readonly string[],
  family: IPFamily,
  options: Options & DiffedNode,
  context: Context,
  { mode, kernel }: PlannedSettings,
): Promise<Side> {
  const { on, here } = options;
  const more = { inMode: mode, proxy: { on, here } };
  const { planned, setup } = await plannedNode({ ...options, file }, context, more);
  demandReadable(planned.mode);
  const counters = kernel !== undefined && hasCounters(kernel.ruleSet);
  const settings = { mode: planned.mode, config: setup.config, counters };
  const plan = plansIn(options.namespace, planned).planner.plan(family);
  const host = hostOf(options, Object.values(planned.options.nodeIPs));
  return { planned: true, state: stateOfParts(await dryRun(plan, settings), family, host), of: planned.state };
}

async function liveSide(family: IPFamily, options: Options, context: Context): Promise<Side> {
  const kernel = await openKernel({ ...options, live: options.on === undefined, rules: undefined }, context);
  if (kernel === undefined) throw new CommandFailure("node: no kernel to look at");
  return { planned: false, state: await kernel.state(family, options["node-address"]) };
}

function textSide(path: string, text: string, family: IPFamily, options: Options): Side {
  const host = hostOf(options, []);
  try {
    if (isPlanText(text)) return { planned: true, state: plannedState(text, family, host) };
    return { planned: false, state: { ruleSet: savedRules(text, family), environment: host } };
  } catch (error) {
    if (!(error instanceof RuleParseError || error instanceof RangeError)) throw error;
    throw new CommandFailure(`${path}: ${error.message}`, { cause: error });
  }
}

function hostOf(options: Options, known: readonly string[]): Environment {
  const given = options["node-address"];
  return { localAddresses: given.length > 0 ? given : known };
}

/** What differs in one table of nftables. */
interface TableDifference extends Pick<Finding, "kind" | "where" | "what"> {
  /** `ip kube-proxy` */
  readonly table: string;
}

/** How tables of nftables differ in chains, rules, sets and elements. A plan says nothing of tables that it has not. */
function differentTables(before: Side, after: Side): readonly TableDifference[] {
  const [old, now] = [byName(before), byName(after)];
  const names = new Set([...old.keys(), ...now.keys()]);
  return [...names].flatMap((table) => {
    const [was, is] = [old.get(table), now.get(table)];
    if ((was === undefined && before.planned) || (is === undefined && after.planned)) return [];
    const only = was === undefined ? ({ kind: "extra", where: "the table", what: table } as const) : undefined;
    const found = was === undefined ? [] : toEnd(compareNftables(was, is));
    return (only === undefined ? found : [only]).map(({ kind, where, what }) => ({ table, kind, where, what }));
  });
}

function byName({ state }: Side): ReadonlyMap<string, NftTable> {
  return new Map((state.nftables ?? []).map((table) => [`${table.family} ${table.name}`, table]));
}

function diffText(
  { compared, changes, masqueraded }: TrafficDifference,
  { rules, tables }: { readonly rules: readonly RuleSetDifference[]; readonly tables: readonly TableDifference[] },
  style: Style,
): string {
  const kinds = `${compared} ${compared === 1 ? "kind" : "kinds"} of packets traced`;
  const head =
    changes.length === 0 ? `Traffic: ${style.good("the same")}, ${kinds}` : `Traffic that changes (${kinds}):`;
  const lines = [head, ...changes.map((one) => changeText(one, style))];
  if (masqueraded > 0)
    lines.push(`${masqueraded} of them are masqueraded by other programs, which makes no difference`);
  const differing = [...rules.flatMap((one) => ruleLines(one, style)), ...tables.map((one) => tableLine(one, style))];
  if (differing.length > 0) lines.push("", "Rules:", ...differing);
  return `${lines.join("\n")}\n`;
}

function changeText({ destination, from, before, after }: TrafficChange, style: Style): string {
  const who = `  ${style.bold(destination)} from ${from.join(", ")}`;
  return `${who}\n    ${style.bad(`- ${fateText(before)}`)}\n    ${style.good(`+ ${fateText(after)}`)}`;
}

function fateText(fate: TrafficOutcome): string {
  return "problem" in fate ? `unknown: ${fate.problem}` : waysText(fate.ways);
}

function fateData(fate: TrafficOutcome) {
  return "problem" in fate ? fate : { ways: Object.fromEntries(fate.ways) };
}

function ruleLines(difference: RuleSetDifference, style: Style): readonly string[] {
  const where = `  ${difference.table} ${difference.chain}`;
  switch (difference.kind) {
    case "chain-missing":
      return [style.bad(`${where}: - the chain`)];
    case "chain-extra":
      return [style.good(`${where}: + the chain`)];
    case "rule-missing":
      return [style.bad(`${where}: - ${difference.rule}`)];
    case "rule-extra":
      return [style.good(`${where}: + ${difference.rule}`)];
    case "policy":
      return [`${where}: policy ${difference.expected} → ${difference.actual}`];
    case "order":
      return [`${where}: in the other order: ${difference.first} and ${difference.second}`];
  }
}

function tableLine({ table, kind, where, what }: TableDifference, style: Style): string {
  const place = `  ${table} ${where}`;
  if (kind === "missing") return style.bad(`${place}: - ${what}`);
  return kind === "extra" ? style.good(`${place}: + ${what}`) : `${place}: ${what}`;
}
