import type { IPFamily } from "@fairlead/core";
import { factsOf, type PlannedNode } from "@fairlead/inspect";
import { CommandError } from "@fairlead/kernel";
import type { Context } from "../../frame/context.ts";
import { CommandFailure, UsageError } from "../../frame/errors.ts";
import type { AgentSetup } from "../../inputs/agent.ts";
import { hostEnvironment, isTcpLiberal, readIpvsObjects } from "../../node/environment.ts";
import { fastPathDevices } from "../../node/fast-path-devices.ts";
import { readRules } from "../../node/rules.ts";
import { check, type KernelContents } from "./check.ts";
import type { FamilyReport } from "./family-report.ts";
import { ofFamily } from "./objects.ts";

/** What is asked besides the runner of the context. */
interface Values {
  /** A listing in place of a kernel. */
  readonly rules: string | undefined;
}

/** Compares both families of a kernel, or a listing's own, with the plan. */
export async function reportsOf(
  planned: PlannedNode,
  setup: AgentSetup,
  options: Values,
  context: Context,
): Promise<readonly FamilyReport[]> {
  if (options.rules !== undefined && hasObjects(planned)) {
    throw new UsageError(
      `--rules: ${planned.mode} mode has more than rules; leave it out and look at this host's kernel`,
    );
  }
  const families: readonly IPFamily[] = options.rules === undefined ? ["IPv4", "IPv6"] : ["IPv4"];
  const reports: FamilyReport[] = [];
  for (const family of families) {
    const held = await heldOf(planned, setup, family, options, context);
    if (held === undefined) continue;
    const found = await check(planned, setup, family, held);
    if (found.services.length > 0 && isLeftOut(planned, family, found.services)) continue;
    reports.push({ family, ...found });
  }
  return reports;
}

/** Agents leave out a family that is turned off on their node: nothing is there, and no service asks for it. */
function isLeftOut({ planner }: PlannedNode, family: IPFamily, services: FamilyReport["services"]): boolean {
  const isMissing = services.every(({ findings }) => findings.every(({ kind }) => kind === "missing"));
  return isMissing && planner.plan(family).groups.size === 0;
}

/** @returns undefined for a family that this host has not got and that nothing is to be programmed for */
async function heldOf(
  planned: PlannedNode,
  { config }: Pick<AgentSetup, "config">,
  family: IPFamily,
  options: Values,
  context: Context,
): Promise<KernelContents | undefined> {
  const { runner } = context;
  try {
    const { rules, nftables } = await readRules(options.rules, family, runner, context);
    if (nftables === undefined && factsOf(planned.mode).nftTables !== undefined) {
      throw new CommandFailure(
        "tables of nftables cannot be read: it takes root's rights, and nft where this machine has no netlink",
      );
    }
    const own = { localAddresses: ownAddresses(planned, family) };
    const kept = { rules, nftables: nftables ?? [] };
    if (options.rules !== undefined) return { ...kept, environment: own };
    const chosen = await fastPathDevices(config, outputBy(runner));
    const fastPath = chosen && { fastPathDevices: new Set(chosen.devices.keys()) };
    const held = { ...kept, ...fastPath, tcpBeLiberal: await isTcpLiberal(runner) };
    const environment = await hostEnvironment(runner, family);
    if (!hasObjects(planned)) return { ...held, environment };
    return { ...held, environment, objects: ofFamily(await readIpvsObjects(runner), family) };
  } catch (error) {
    if (!(error instanceof CommandFailure) || planned.planner.plan(family).groups.size > 0) throw error;
    context.warn(`${family}: ${error.message}; nothing is to be there`);
    return undefined;
  }
}

function outputBy(runner: Context["runner"]) {
  return async (program: string, ...args: readonly string[]) => {
    try {
      return (await runner.run([program, ...args])).stdout;
    } catch (error) {
      if (error instanceof CommandError) return undefined;
      throw error;
    }
  };
}

/** Whether the mode programs more than rules and tables of nftables. */
function hasObjects({ mode }: PlannedNode): boolean {
  const { objects, nftTables } = factsOf(mode);
  return objects.own !== undefined && nftTables === undefined;
}

function ownAddresses({ options }: PlannedNode, family: IPFamily): readonly string[] {
  const own = options.nodeIPs[family];
  return own === undefined ? [] : [own];
}
