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
import type { AgentSetup } from "./agent.ts";
import { nodeNameOf } from "./api-source.ts";
import { apiConnection, NO_CLUSTER, orFailure } from "./cluster-access.ts";
import type { clusterOptions } from "./cluster-options.ts";
import { type Configured, configurationOf, sayConfiguration, type WantedProxy } from "./configuration.ts";
import { didYouMean } from "./did-you-mean.ts";
import { inMode } from "./in-mode.ts";
import { learnedDoubts, unmatched } from "./learned.ts";
import { ServerFailure } from "./server-failure.ts";
import { allNodes, clusterNow, type ReadCluster, warnOfProblems } from "./source.ts";
import { demandThisHost } from "./this-host.ts";

const LOOPBACK = ["127.0.0.1", "::1"];

export type ClusterValues = OptionValues<typeof clusterOptions>;

export interface PlannedNodeOptions {
  /** Whose configuration counts. Default: that of the node in the cluster. */
  readonly proxy?: WantedProxy;
  /** The configuration, where nothing is to be asked for. */
  readonly setup?: AgentSetup;
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
  /** Without a configuration the defaults will do. Default: only of manifests. */
  readonly lenient?: boolean;
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
  given: ClusterValues,
  context: Context,
  { live, about, everywhere = false, proxy = { any: everywhere }, inMode: mode, ...more }: PlannedNodeOptions = {},
): Promise<PlannedSetup> {
  if (given.file.length === 0) await orFailure(NO_CLUSTER, apiConnection(given, context));
  const configured =
    more.setup === undefined ? await askedFor(given, proxy, context, { everywhere, ...more }) : { setup: more.setup };
  const setup = mode === undefined ? configured.setup : inMode(configured.setup, mode);
  const { networks, config } = setup;
  const options = proxy.here === true ? { ...given, node: given.node ?? config.hostnameOverride } : given;
  let services: ReadonlySet<ServiceKey> | undefined;
  const related = (state: ClusterView, to: Target) => {
    services = relatedServices(state, to);
    return services;
  };
  const slicesOf = about && ((state: ClusterView) => related(state, about));
  const { serviceCIDRs = false } = factsOf(setup.mode).needs;
  const cluster = await clusterNow(options, context, { slicesOf, about, serviceCIDRs, networks, config });
  sayConfiguration(configured, context);
  const nodeName = nodeNameOf(options);
  if (!everywhere) await demandNode(options, proxy, context, cluster);
  if (proxy.here === true && live !== undefined) demandThisHost(given, live, cluster.node);
  const own = options["node-address"];
  const known = own.length > 0 ? [...LOOPBACK, ...own] : live;
  const addresses = known === undefined ? {} : { addresses: known };
  const plan = (by: AgentSetup) => {
    return planNode({ ...by, ...addresses, ...(services && { services }), cluster, nodeName });
  };
  const planned = plan(setup);
  warnOfProblems(planned.problems, context);
  const { learned } = cluster;
  if (learned !== undefined) warnOfLearned(learned, options, context);
  if (!everywhere) for (const doubt of missingNodeDoubts(cluster, nodeName, services)) context.warn(doubt);
  const planIn = (other: Mode) => {
    const by = inMode(setup, other);
    return { planned: plan(by), config: by.config };
  };
  return { planned, setup, learned, planIn };
}

/** Where the configuration of a node is not known, that there is no such node says more. */
async function askedFor(
  options: ClusterValues,
  proxy: WantedProxy,
  context: Context,
  { everywhere, ...more }: Pick<PlannedNodeOptions, "anyMode" | "everywhere" | "lenient">,
): Promise<Configured> {
  try {
    return await configurationOf(options, proxy, context, more);
  } catch (error) {
    if (!(error instanceof CommandFailure) || options.file.length > 0) throw error;
    const names = await nodeNames(options, context);
    if (everywhere !== true && names?.includes(nodeNameOf(options)) === false) throw noSuchNode(options, proxy, names);
    throw error;
  }
}

function warnOfLearned(learned: LearnedOnce, { file }: ClusterValues, { warn }: Context): void {
  const missing = file.length > 0 ? unmatched(learned) : [];
  for (const line of [...learnedDoubts(learned), ...missing]) warn(line);
}

/** @throws CommandFailure where the node is none of those that there are */
async function demandNode(
  options: ClusterValues,
  proxy: WantedProxy,
  context: Context,
  { node, otherNodes }: ReadCluster,
): Promise<void> {
  if (node !== undefined || otherNodes?.length === 0) return;
  throw noSuchNode(options, proxy, otherNodes ?? (await nodeNames(options, context)));
}

function noSuchNode(
  options: ClusterValues & { readonly "all-nodes"?: boolean },
  { here = false }: WantedProxy,
  names: readonly string[] | undefined,
): CommandFailure {
  const list = nodesText(names);
  // Where a kernel is looked at, --node would only name the plan that this host's kernel is compared with.
  const all = options["all-nodes"] === undefined ? "" : " or --all-nodes";
  const flags = here ? `--on NODE${all}` : "--node NODE";
  if (options.node === undefined) return new CommandFailure(`no Node has this host's name: give ${flags}; ${list}`);
  const given = nodeNameOf(options);
  return new CommandFailure(`--node=${given}: there is no such Node; ${list}${didYouMean(given, names ?? [])}`);
}

function nodesText(names: readonly string[] | undefined): string {
  if (names === undefined) return "kubectl get nodes lists those that there are";
  return names.length === 0 ? "the cluster has no Nodes" : `there are: ${names.join(", ")}`;
}

/**
 * Undefined: they may not be listed.
 *
 * @throws CommandFailure when the API server does not answer
 */
async function nodeNames(options: ClusterValues, context: Context): Promise<readonly string[] | undefined> {
  try {
    return [...(await allNodes(options, context)).keys()];
  } catch (error) {
    if (error instanceof ServerFailure) throw error;
    return undefined;
  }
}
