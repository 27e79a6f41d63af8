/** The plan of the node that is asked about, or of any node of a cluster. */

import { hostname } from "node:os";
import type { ClusterView, NodeState, ServiceKey } from "@fairlead/core";
import {
  asRead,
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
import type { clusterOptions, sourceOptions } from "../facts/options.ts";
import type { OptionValues } from "../frame/command.ts";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import { type Agents, agentPods, agentsOf } from "../node/agent-pods.ts";
import { type AgentSetup, inMode } from "./agent.ts";
import { apiConnection, NO_CLUSTER, nodeNameOf, orFailure, Refused, ServerFailure } from "./cluster-access.ts";
import {
  type ConfigurationOptions,
  type Configured,
  configurationOf,
  sayConfiguration,
  type WantedProxy,
} from "./configuration.ts";
import { didYouMean } from "./names.ts";
import { allNodes, clusterNow, type ReadCluster, warnOfProblems } from "./source.ts";

const LOOPBACK = ["127.0.0.1", "::1"];

export type ClusterValues = OptionValues<typeof clusterOptions>;

export interface PlannedNodeOptions extends ConfigurationOptions {
  /** The proxy whose configuration counts. Default: that of the node in the cluster. */
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
  const { networks, config, asKubeProxy } = setup;
  const options = proxy.here === true ? { ...given, node: given.node ?? config.hostnameOverride } : given;
  let services: ReadonlySet<ServiceKey> | undefined;
  const related = (state: ClusterView, to: Target) => {
    services = relatedServices(state, to);
    return services;
  };
  const slicesOf = about && ((state: ClusterView) => related(asRead(state, asKubeProxy), about));
  const { serviceCIDRs = false, otherNodes = false } = factsOf(setup.mode).needs;
  const nodeName = nodeNameOf(options);
  const othersOf = otherNodes ? nodeName : undefined;
  const cluster = await clusterNow(options, context, { slicesOf, about, serviceCIDRs, othersOf, networks, config });
  sayConfiguration(configured, context);
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

/** Undefined: they may not be listed. */
async function nodeNames(options: ClusterValues, context: Context): Promise<readonly string[] | undefined> {
  try {
    return [...(await allNodes(options, context)).keys()];
  } catch (error) {
    if (error instanceof ServerFailure) throw error;
    return undefined;
  }
}

interface NodePlan {
  readonly planned: PlannedNode;
  readonly setup: AgentSetup;
}

/** Plans a cluster for any of its nodes. Its objects are read once for all proxies that ask for the same ones. */
export class PlannedNodes {
  readonly #options: ClusterValues;
  readonly #context: Context;
  readonly #nodes: ReadonlyMap<string, NodeState | undefined>;
  readonly #clusters = new Map<string, Promise<ReadCluster>>();
  /** Names of nodes by where their configuration is from. */
  readonly #remarks = new Map<string, string[]>();

  private constructor(options: ClusterValues, context: Context, nodes: ReadonlyMap<string, NodeState | undefined>) {
    this.#options = options;
    this.#context = context;
    this.#nodes = nodes;
  }

  static async of(options: ClusterValues, context: Context): Promise<PlannedNodes> {
    return new PlannedNodes(options, context, await knownNodes(options, agentsOf(options, context), context));
  }

  /** In their order. */
  get names(): readonly string[] {
    return [...this.#nodes.keys()];
  }

  /** @param addresses those that the node has */
  async plan(nodeName: string, addresses: readonly string[]): Promise<NodePlan> {
    const configured = await configurationOf(this.#options, { on: nodeName }, this.#context);
    this.#remember(nodeName, configured);
    const { setup } = configured;
    const node = this.#nodes.get(nodeName);
    const others = [...this.#nodes].flatMap(([name, other]) => (name === nodeName ? [] : (other?.addresses ?? [])));
    const otherAddresses = [...new Set(others)].sort();
    const known = { ...(await this.#clusterFor(setup)), ...(node && { node }), otherAddresses };
    for (const doubt of missingNodeDoubts(known, nodeName)) this.#context.warn(doubt);
    return { planned: planNode({ ...setup, cluster: known, nodeName, addresses }), setup };
  }

  get remarks(): readonly string[] {
    return [...this.#remarks].map(([remark, names]) => `configuration of ${names.sort().join(", ")}: ${remark}`);
  }

  #remember(node: string, { remark }: Configured): void {
    if (remark === undefined) return;
    const text = remark.replace(`the proxy on ${node},`, "the running proxy,");
    const names = this.#remarks.get(text) ?? [];
    names.push(node);
    this.#remarks.set(text, names);
  }

  #clusterFor({ mode, networks, config }: AgentSetup): Promise<ReadCluster> {
    const { serviceCIDRs = false } = factsOf(mode).needs;
    const { multiCNI, serviceProxyName, serviceNetwork } = config;
    const key = JSON.stringify([serviceCIDRs, multiCNI, serviceProxyName, serviceNetwork]);
    const known = this.#clusters.get(key);
    if (known !== undefined) return known;
    // What is wrong with single objects is the same again.
    const context = this.#clusters.size === 0 ? this.#context : { ...this.#context, warn: () => {} };
    const read = clusterNow(this.#options, context, { serviceCIDRs, networks, config });
    this.#clusters.set(key, read);
    return read.then((cluster) => {
      if (cluster.learned !== undefined) for (const line of learnedDoubts(cluster.learned)) context.warn(line);
      return cluster;
    });
  }
}

/**
 * All Nodes, in the order of their names. Without the right to list them those that agents run on, of which no more is
 * known: undefined.
 */
export async function knownNodes(
  options: OptionValues<typeof sourceOptions>,
  agents: Agents,
  context: Context,
): Promise<ReadonlyMap<string, NodeState | undefined>> {
  try {
    return await allNodes(options, context);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const pods = await agentPods(agents).catch(() => {
      throw error;
    });
    context.warn(`only nodes with an agent are known: ${error.message}`);
    return new Map([...pods.keys()].sort().map((name) => [name, undefined]));
  }
}

/** Resources that an operator described, and no object in the files is of: without a definition a kind is guessed. */
function unmatched({ report }: LearnedOnce): readonly string[] {
  const described = report.sources.filter(({ source, state }) => source.includes(".") && state === "empty");
  return described.map(
    ({ source }) =>
      `${source}: the files have no object of this resource, so nothing is learned from it. Where its kind does not follow from ` +
      "the name, add its CustomResourceDefinition to the files",
  );
}

/** What of networks' objects does not count, or cannot be known; a line each. */
export function learnedDoubts({ report, problems }: LearnedOnce): readonly string[] {
  const unread = report.sources.filter(({ state }) => state === "forbidden" || state === "unreachable");
  const refused = report.cidrs.filter(({ stage }) => stage === "refused" || stage === "held");
  return [
    ...unread.map(({ source, state, forbidden = [] }) => {
      const which = forbidden.length > 0 ? ` (${forbidden.join(", ")})` : "";
      return `${source}: ${state}${which}; what an agent learns of it is not known here`;
    }),
    ...problems,
    ...refused.map(({ cidr, objects, why = "" }) => `${objects.join(", ")}: ${cidr} does not count: ${why}`),
  ];
}

/**
 * A node that is named is not taken for this host, whose kernel would answer for it.
 *
 * @param live the addresses that this host has
 * @param node undefined: nothing is known of it
 */
export function demandThisHost(
  { node: name }: { readonly node: string | undefined },
  live: readonly string[],
  node: Pick<NodeState, "addresses"> | undefined,
): void {
  if (name === undefined || node === undefined || node.addresses.length === 0) return;
  if (name.toLowerCase() === hostname().toLowerCase()) return;
  const own = new Set(live);
  if (node.addresses.some((address) => own.has(address))) return;
  throw new CommandFailure(
    `--node=${name}: this host is not that Node (it does not have ${node.addresses.join(" or ")}); look at it with --on ${name}`,
  );
}
