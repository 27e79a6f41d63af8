import type { IPFamily } from "@fairlead/core";
import {
  factsOf,
  hostEnvironment,
  ipvsObjectsOf,
  isTcpLiberal,
  type NodeState,
  type PlannedNode,
  rulesOf,
  tablesOf,
} from "@fairlead/inspect";
import type { Context } from "../../frame/context.ts";
import { CommandFailure, UsageError } from "../../frame/errors.ts";
import type { AgentSetup } from "../../inputs/agent.ts";
import { orFailure } from "../../node/access.ts";
import { fastPathDevices } from "../../node/fast-path-devices.ts";
import { readRules } from "../../node/rules.ts";
import { check, type KernelContents } from "./check.ts";
import type { FamilyReport } from "./family-report.ts";
import { ofFamily } from "./objects.ts";

/** What is compared with a plan: a node's kernel, or the file of a listing. */
type Held = { readonly state: NodeState } | { readonly rules: string };

/** Compares both families of a kernel, or a listing's own, with the plan. */
export async function reportsOf(
  planned: PlannedNode,
  setup: AgentSetup,
  held: Held,
  context: Pick<Context, "progress" | "readStandardInput" | "warn">,
): Promise<readonly FamilyReport[]> {
  if ("rules" in held && hasObjects(planned)) {
    throw new UsageError(
      `--rules: ${planned.mode} mode has more than rules; leave it out and look at this host's kernel`,
    );
  }
  const families: readonly IPFamily[] = "state" in held ? ["IPv4", "IPv6"] : ["IPv4"];
  const reports: FamilyReport[] = [];
  for (const family of families) {
    const contents = await contentsOf(planned, setup, family, held, context);
    if (contents === undefined) continue;
    const found = await check(planned, setup, family, contents);
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
async function contentsOf(
  planned: PlannedNode,
  { config }: Pick<AgentSetup, "config">,
  family: IPFamily,
  held: Held,
  context: Pick<Context, "progress" | "readStandardInput" | "warn">,
): Promise<KernelContents | undefined> {
  try {
    if ("state" in held) return orFailure(() => liveContents(planned, config, family, held.state));
    const { rules, nftables } = await readRules(held.rules, family, context);
    return { rules, nftables, environment: { localAddresses: ownAddresses(planned, family) } };
  } catch (error) {
    if (!(error instanceof CommandFailure) || planned.planner.plan(family).groups.size > 0) throw error;
    context.warn(`${family}: ${error.message}; no rules are expected`);
    return undefined;
  }
}

/** @throws UnreadState for what could not be read */
function liveContents(
  planned: PlannedNode,
  config: AgentSetup["config"],
  family: IPFamily,
  state: NodeState,
): KernelContents {
  const rules = orFailure(() => rulesOf(state, family), "rules");
  const nftables = tablesOf(state, family);
  if (nftables === undefined && factsOf(planned.mode).nftTables !== undefined) {
    throw new CommandFailure(
      "tables of nftables cannot be read: it takes root's rights, and nft where this machine has no netlink",
    );
  }
  const chosen = fastPathDevices(config, state);
  const tcpBeLiberal = isTcpLiberal(state);
  return {
    rules,
    nftables: nftables ?? [],
    environment: hostEnvironment(state, family),
    ...(chosen && { fastPathDevices: new Set(chosen.devices.keys()) }),
    ...(tcpBeLiberal !== undefined && { tcpBeLiberal }),
    ...(hasObjects(planned) && { objects: ofFamily(ipvsObjectsOf(state), family) }),
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
