import { readFile, stat } from "node:fs/promises";
import { errorText } from "@fairlead/base";
import type { ClusterView, IPFamily } from "@fairlead/core";
import type { KernelState } from "@fairlead/inspect";
import { dryRun, type Mode } from "@fairlead/inspect";
import { LazySaveParser, RuleParseError } from "@fairlead/netfilter";
import type { Environment } from "@fairlead/trace";
import type { CommandInput } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure, UsageError } from "../../frame/errors.ts";
import { plansIn } from "../../inputs/namespaces.ts";
import { plannedNode } from "../../inputs/planned.ts";
import { openKernel } from "../../node/access.ts";
import { hasCounters, isPlanText, plannedState, stateOfParts } from "../../node/rules.ts";
import type { diffOptions } from "./options.ts";

type Options = CommandInput<typeof diffOptions>["options"];

/** The argument that means the kernel of a node. */
export const NODE = "node";

interface DiffedNode {
  /** This host's kernel is one of the two. */
  readonly here: boolean;
}

/** How a side is planned that is planned. */
interface PlannedSettings {
  /** Default: the one of the options. */
  readonly mode?: Mode | undefined;
  /** What it is compared with; default: another plan, or a text. */
  readonly kernel?: KernelState | undefined;
}

/** One of the two that are compared. */
export interface Side {
  /** It is what an agent would write, with no rules of other programs alongside it. */
  readonly planned: boolean;
  readonly state: KernelState;
  /** The objects that it is planned of. */
  readonly of?: ClusterView;
}

/**
 * What an argument of diff means.
 *
 * @throws CommandFailure when it cannot be read
 */
export async function readSide(
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

/** @throws UsageError: rules do not say of which namespace they are */
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
    const parser = new LazySaveParser({ family });
    parser.push(text);
    return { planned: false, state: { ruleSet: parser.end(), environment: host } };
  } catch (error) {
    if (!(error instanceof RuleParseError || error instanceof RangeError)) throw error;
    throw new CommandFailure(`${path}: ${error.message}`, { cause: error });
  }
}

/** As much of a node as the options say. */
function hostOf(options: Options, known: readonly string[]): Environment {
  const given = options["node-address"];
  return { localAddresses: given.length > 0 ? given : known };
}
