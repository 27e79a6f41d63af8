/**
 * Reads the kernels that are compared: this host's or another node's, a listing's, those of all nodes, those of an
 * archive.
 */

import { errorText, familyOf } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import {
  factsOf,
  hostEnvironment,
  type IpvsObjects,
  ipvsObjectsOf,
  isTcpLiberal,
  type NodeState,
  type PlannedNode,
  rulesOf,
  tablesOf,
} from "@fairlead/inspect";
import type { Container } from "../../cluster/pods.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure, UsageError } from "../../frame/errors.ts";
import { type AgentSetup, demandReadable } from "../../inputs/agent.ts";
import { demandServices } from "../../inputs/names.ts";
import { type ClusterValues, PlannedNodes, plannedNode } from "../../inputs/planned.ts";
import { interfaceAddresses, orFailure } from "../../node/access.ts";
import { eachNode } from "../../node/agent-endpoint.ts";
import { agentPods, agentsOf, runnerInPod } from "../../node/agent-pods.ts";
import { fastPathDevices } from "../../node/fast-path-devices.ts";
import { stateIn } from "../../node/read-state.ts";
import { readRules } from "../../node/rules.ts";
import { noOtherSource, openSysdump, replayedOn, type Sysdump } from "../../sysdump/dump.ts";
import { check, type FamilyReport, type KernelContents } from "./check.ts";

/** What is compared with a plan: a node's kernel, or the file of a listing. */
export type Held = { readonly state: NodeState } | { readonly rules: string };

/** Compares both families of a kernel, or a listing's own, with the plan. */
export async function reportsOf(
  planned: PlannedNode,
  setup: AgentSetup,
  held: Held,
  context: Pick<Context, "progress" | "readStandardInput" | "warn">,
): Promise<readonly FamilyReport[]> {
  demandReadable(planned.mode);
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

export type NodeReport =
  | { readonly node: string; readonly families: readonly FamilyReport[] }
  /** It could not be looked at. */
  | { readonly node: string; readonly problem: string };

/**
 * Compares the kernel of every node with what should be programmed there; a few nodes at once. The cluster is read
 * once.
 */
export async function verifyNodes(
  options: ClusterValues & { readonly namespace?: string | undefined },
  context: Context,
): Promise<readonly NodeReport[]> {
  const all = agentsOf(options, context);
  const nodes = await PlannedNodes.of(options, context);
  const { names } = nodes;
  if (names.length === 0) throw new CommandFailure("the cluster has no Nodes: nothing was compared");
  const agents = await agentPods(all);
  const look = async (node: string, pod: Container): Promise<readonly FamilyReport[]> => {
    const state = await stateIn(runnerInPod(all.cluster, pod));
    const { planned, setup } = await nodes.plan(node, interfaceAddresses(state));
    demandServices(options.namespace, [planned.state]);
    return reportsOf(planned, setup, { state }, { ...context, progress: (_what, work) => work() });
  };
  let done = 0;
  const report = async (node: string): Promise<NodeReport> => {
    const pod = agents.get(node);
    if (pod === undefined) return { node, problem: "no agent runs there" };
    try {
      const families = await context.progress(`verifying ${node} (${done} of ${names.length} nodes done)`, () =>
        look(node, pod),
      );
      return { node, families };
    } catch (error) {
      return { node, problem: errorText(error) };
    } finally {
      done += 1;
    }
  };
  const reports = await eachNode(names, report);
  for (const line of nodes.remarks) context.warn(line);
  return reports;
}

type Values = ClusterValues & Parameters<typeof noOtherSource>[0];

export async function verifyDumped(options: Values, context: Context): Promise<readonly NodeReport[]> {
  noOtherSource(options);
  const dump = await openSysdump(options.sysdump ?? "");
  const reports: NodeReport[] = [];
  for (const node of dump.nodes) {
    try {
      const work = () => reportsFromArchive(dump, node, options, context);
      reports.push({ node, families: await context.progress(`verifying ${node}`, work) });
    } catch (error) {
      reports.push({ node, problem: errorText(error) });
    }
  }
  return reports;
}

/** What differs on one node of a dump. */
export async function reportsFromArchive(
  dump: Sysdump,
  node: string,
  options: Values,
  around: Context,
): Promise<readonly FamilyReport[]> {
  const quiet = <T>(_what: string, work: () => Promise<T>) => work();
  const { options: own, context } = replayedOn(dump, node, options, { ...around, progress: quiet });
  const state = await context.stateHere();
  const live = interfaceAddresses(state);
  const { planned, setup } = await plannedNode(own, context, { proxy: { here: true }, live });
  return reportsOf(planned, setup, { state }, context);
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
    const read = await readRules(held.rules, family, context);
    return { ...read, environment: { localAddresses: ownAddresses(planned, family) } };
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
  const ruleSet = orFailure(() => rulesOf(state, family), "rules");
  const nftables = tablesOf(state, family);
  if (nftables === undefined && factsOf(planned.mode).nftTables !== undefined) {
    throw new CommandFailure(
      "tables of nftables cannot be read: it takes root's rights, and nft where this machine has no netlink",
    );
  }
  const chosen = fastPathDevices(config, state);
  const tcpBeLiberal = isTcpLiberal(state);
  return {
    ruleSet,
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

/** What one family has of ipvs mode's objects; sets of no family belong to both. */
function ofFamily({ servers, sets, addresses }: IpvsObjects, family: IPFamily): IpvsObjects {
  return {
    servers: servers.filter((server) => server.family === family),
    sets,
    addresses: addresses && new Set([...addresses].filter((address) => familyOf(address) === family)),
  };
}
