import type { IPFamily } from "@fairlead/core";
import { factsOf, type PlannedNode } from "@fairlead/inspect";
import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure, UsageError } from "../../frame/errors.ts";
import type { AgentSetup } from "../../inputs/agent.ts";
import { plannedNode } from "../../inputs/planned.ts";
import { oneKernel, runnerFor } from "../../node/access.ts";
import { hostEnvironment, readIpvsObjects } from "../../node/environment.ts";
import { nodeAddresses } from "../../node/kernel-state.ts";
import { readRules } from "../../node/rules.ts";
import { print } from "../../output/output.ts";
import { check, type Held } from "./check.ts";
import type { FamilyReport } from "./family-report.ts";
import { ofFamily } from "./objects.ts";
import type { verifyOptions } from "./options.ts";
import { askForFullSync } from "./repair.ts";
import { reportText } from "./show.ts";

type Values = CommandInput<typeof verifyOptions>["options"];

export async function run({ options }: CommandInput<typeof verifyOptions>, context: Context): Promise<ExitCode> {
  oneKernel(options);
  if (options.repair && (options.rules ?? options.on) !== undefined) {
    throw new UsageError("--repair: only the agent of this host can be asked; leave out --rules and --on");
  }
  const runner = await runnerFor(options, context);
  const node = options.node ?? options.on;
  const addresses = options.rules === undefined ? await nodeAddresses(runner) : undefined;
  const { planned, setup } = await plannedNode({ ...options, node }, context, { live: addresses });
  const look = () => reportsOf(planned, setup, options, { ...context, runner });
  let reports = await look();
  if (options.repair && differs(reports)) reports = await askForFullSync(reports, look, differs, context);
  await print(options.output, reports, () => reportText(reports, context.style), context);
  return differs(reports) ? 1 : 0;
}

function differs(reports: readonly FamilyReport[]): boolean {
  return reports.some(({ services }) => services.length > 0);
}

async function reportsOf(
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
    const held = await heldOf(planned, family, options, context);
    if (held === undefined) continue;
    const services = await check(planned, setup, family, held);
    reports.push({ family, services });
  }
  return reports;
}

/** @returns undefined for a family that this host has not got and that nothing is to be programmed for */
async function heldOf(
  planned: PlannedNode,
  family: IPFamily,
  options: Values,
  context: Context,
): Promise<Held | undefined> {
  const { runner } = context;
  try {
    const { rules, nftables } = await readRules(options.rules, family, runner, context);
    if (nftables === undefined && factsOf(planned.mode).nftTables !== undefined) {
      throw new CommandFailure("tables of nftables cannot be listed: it takes nft (nftables) and the rights to use it");
    }
    const own = { localAddresses: ownAddresses(planned, family) };
    const held = { rules, nftables: nftables ?? [] };
    if (options.rules !== undefined) return { ...held, environment: own };
    const environment = await hostEnvironment(runner, family);
    if (!hasObjects(planned)) return { ...held, environment };
    return { ...held, environment, objects: ofFamily(await readIpvsObjects(runner), family) };
  } catch (error) {
    if (!(error instanceof CommandFailure) || planned.planner.plan(family).groups.size > 0) throw error;
    context.warn(`${family}: ${error.message}; nothing is to be there`);
    return undefined;
  }
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
