import type { ClusterView, ServiceKey } from "@fairlead/core";
import {
  factsOf,
  type Mode,
  type ModeSide,
  missingNodeDoubts,
  type PlannedNode,
  planNode,
  relatedServices,
  type Target,
} from "@fairlead/inspect";
import type { LearnedOnce } from "@fairlead/intake";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import type { OptionValues } from "../frame/options.ts";
import { type AgentSetup, agentSetup } from "./agent.ts";
import type { clusterOptions } from "./cluster-options.ts";
import { didYouMean } from "./did-you-mean.ts";
import { inMode } from "./in-mode.ts";
import { learnedDoubts, unmatched } from "./learned.ts";
import { allNodes, clusterNow, nodeNameOf, type ReadCluster, warnOfProblems } from "./source.ts";

const LOOPBACK = ["127.0.0.1", "::1"];

export type ClusterValues = OptionValues<typeof clusterOptions>;

export interface PlannedNodeOptions {
  /** The addresses that the node has, where its kernel is looked at. */
  readonly live?: readonly string[] | undefined;
  /**
   * The only thing that is asked about: services that have nothing to do with it are not planned. Default: everything.
   */
  readonly about?: Target;
  /** What is asked for is the same on every node: a node that there is not will do. */
  readonly everywhere?: boolean;
  /** In the place of the mode that the options name. */
  readonly inMode?: Mode | undefined;
  /** What is asked for is the same in every mode: also in one that no plan can be made for. */
  readonly anyMode?: boolean;
}

export interface PlannedSetup {
  readonly planned: PlannedNode;
  readonly setup: AgentSetup;
  /** Undefined: the agent learns no network. */
  readonly learned: LearnedOnce | undefined;
  /** The same objects, planned in another mode. */
  readonly planIn: (mode: Mode) => ModeSide;
}

/** What the agent of the node that is asked about makes of the objects that are given, and how it is set up. */
export async function plannedNode(
  options: ClusterValues,
  context: Context,
  { live, about, everywhere = false, anyMode = false, inMode: mode }: PlannedNodeOptions = {},
): Promise<PlannedSetup> {
  const given = agentSetup(options, context, { anyMode });
  const setup = mode === undefined ? given : inMode(given, mode);
  const { networks, config } = setup;
  let services: ReadonlySet<ServiceKey> | undefined;
  const related = (state: ClusterView, to: Target) => {
    services = relatedServices(state, to);
    return services;
  };
  const slicesOf = about && ((state: ClusterView) => related(state, about));
  const { serviceCIDRs = false } = factsOf(setup.mode).needs;
  const cluster = await clusterNow(options, context, { slicesOf, about, serviceCIDRs, networks, config });
  const nodeName = nodeNameOf(options);
  if (!everywhere) await demandNode(options, context, cluster);
  const own = options["node-address"];
  const known = own.length > 0 ? [...LOOPBACK, ...own] : live;
  const addresses = known === undefined ? {} : { addresses: known };
  const plan = (by: AgentSetup) => {
    return planNode({ ...by, ...addresses, ...(services && { services }), cluster, nodeName });
  };
  const planned = plan(setup);
  warnOfProblems(planned.problems, context);
  const { learned } = cluster;
  if (learned !== undefined) {
    const missing = options.file.length > 0 ? unmatched(learned) : [];
    for (const line of [...learnedDoubts(learned), ...missing]) context.warn(line);
  }
  if (!everywhere) for (const doubt of missingNodeDoubts(cluster, nodeName, services)) context.warn(doubt);
  const planIn = (other: Mode) => {
    const by = inMode(setup, other);
    return { planned: plan(by), config: by.config };
  };
  return { planned, setup, learned, planIn };
}

/** @throws CommandFailure where the node is none of those that there are */
async function demandNode(options: ClusterValues, context: Context, { node, otherNodes }: ReadCluster): Promise<void> {
  if (node !== undefined || otherNodes?.length === 0) return;
  const names = otherNodes ?? (await nodeNames(options, context));
  const given = options.node === undefined ? undefined : nodeNameOf(options);
  const list = names === undefined ? "kubectl get nodes lists those that there are" : `there are: ${names.join(", ")}`;
  if (given === undefined) throw new CommandFailure(`no Node has this host's name: give --node; ${list}`);
  throw new CommandFailure(`--node=${given}: there is no such Node; ${list}${didYouMean(given, names ?? [])}`);
}

/** Undefined: they may not be listed. */
async function nodeNames(options: ClusterValues, context: Context): Promise<readonly string[] | undefined> {
  try {
    return [...(await allNodes(options, context)).keys()];
  } catch {
    return undefined;
  }
}
