import { readFile, stat } from "node:fs/promises";
import type { IPFamily } from "@fairlead/core";
import { dryRun, type KernelState, type ProgramText } from "@fairlead/inspect";
import { LazySaveParser, RuleParseError } from "@fairlead/netfilter";
import type { Environment } from "@fairlead/trace";
import { addressesOf, restored, serversOf, setsOf } from "@fairlead/verify";
import type { CommandInput } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure } from "../../frame/errors.ts";
import { plannedNode } from "../../inputs/planned.ts";
import { openKernel } from "../../node/access.ts";
import { ipvsEnvironment } from "../../node/environment.ts";
import { cutPlanText } from "../plan/rules-text.ts";
import type { diffOptions } from "./options.ts";

type Options = CommandInput<typeof diffOptions>["options"];

/** One of the two that are compared. */
export interface Side {
  /** It is what an agent would write, with nobody's rules beside it. */
  readonly planned: boolean;
  readonly state: KernelState;
}

/**
 * What an argument of diff means.
 *
 * @throws CommandFailure when it cannot be read
 */
export async function readSide(argument: string, family: IPFamily, options: Options, context: Context): Promise<Side> {
  if (argument === "cluster") return plannedSide([], family, options, context);
  if (argument === "node") return liveSide(family, options, context);
  const text = await rulesIn(argument);
  return text === undefined
    ? plannedSide([argument], family, options, context)
    : textSide(argument, text, family, options);
}

/** Undefined: it is a folder, or a file without a table of rules, so manifests. */
async function rulesIn(path: string): Promise<string | undefined> {
  try {
    if ((await stat(path)).isDirectory()) return undefined;
    const text = await readFile(path, "utf8");
    return /^\*(?:nat|filter|mangle|raw|security)$/m.test(text) ? text : undefined;
  } catch (error) {
    throw new CommandFailure(`${path}: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
}

async function plannedSide(
  file: readonly string[],
  family: IPFamily,
  options: Options,
  context: Context,
): Promise<Side> {
  const { planned, setup } = await plannedNode({ ...options, file }, context);
  const texts = await dryRun(planned.planner.plan(family), { mode: planned.mode, config: setup.config });
  return { planned: true, state: stateOf(texts, family, hostOf(options, Object.values(planned.options.nodeIPs))) };
}

async function liveSide(family: IPFamily, options: Options, context: Context): Promise<Side> {
  const { on, kubeconfig } = options;
  const kernel = await openKernel({ on, kubeconfig, live: on === undefined, rules: undefined }, context);
  if (kernel === undefined) throw new CommandFailure("node: no kernel to look at");
  return { planned: false, state: await kernel.state(family, options["node-address"]) };
}

function textSide(path: string, text: string, family: IPFamily, options: Options): Side {
  const host = hostOf(options, []);
  const texts = cutPlanText(text);
  try {
    if (texts.length > 0) return { planned: true, state: stateOf(texts, family, host) };
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

/** What programs make of an empty node. */
function stateOf(texts: readonly ProgramText[], family: IPFamily, host: Environment): KernelState {
  const of = (wanted: (program: string) => boolean) =>
    texts.flatMap(({ argv: [program], text }) => (wanted(program) ? [text] : [])).join("");
  const objects = {
    servers: serversOf(of((program) => program === "ipvsadm")),
    sets: setsOf(of((program) => program === "ipset")),
    addresses: addressesOf(of((program) => program === "ip")),
  };
  const ruleSet = restored(
    of((program) => program.endsWith("tables-restore")),
    family,
  );
  return { ruleSet, environment: ipvsEnvironment(host, objects) };
}
