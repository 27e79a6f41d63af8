/** `doctor`: what keeps a service proxy from working, and what to do. */

import { hostname } from "node:os";
import { errorText, IP_FAMILIES } from "@fairlead/base";
import type { NodeState as ClusterNode, ClusterView, ServiceKey } from "@fairlead/core";
import {
  type Diagnosis,
  diagnose,
  type IsolatedService,
  type NodeFacts,
  type NodeState,
  planNode,
  podFacts,
} from "@fairlead/inspect";
import { ownershipReport, type PodNetworkFacts, podNetworkOf } from "@fairlead/intake";
import { accessOf } from "../../cluster/access.ts";
import type { doctorOptions } from "../../facts/nodes.ts";
import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { print } from "../../frame/output.ts";
import type { Style } from "../../frame/terminal.ts";
import { counted, verdictText } from "../../frame/text.ts";
import { type AgentSetup, demandReadable, warnOfUnlearned } from "../../inputs/agent.ts";
import { nodeNameOf } from "../../inputs/cluster-access.ts";
import { configurationOf, sayConfiguration } from "../../inputs/configuration.ts";
import { allNodes, clusterNow } from "../../inputs/source.ts";
import { runnerFor, stateOf } from "../../node/access.ts";
import { apiFacts } from "./api.ts";
import { nodeFacts } from "./facts.ts";
import { clusterNetworks } from "./networks.ts";

export async function run({ options }: CommandInput<typeof doctorOptions>, context: Context): Promise<ExitCode> {
  const { on } = options;
  const here = on === undefined;
  const values = { ...options, file: [], node: undefined, "node-address": [], memory: undefined };
  const configured = await configurationOf(values, { on, here }, context, { anyMode: true, lenient: true });
  sayConfiguration(configured, context);
  const { setup, running } = configured;
  demandReadable(setup.mode);
  const api = await context.progress("asking the API server", () => apiFacts(options, context));
  if (api.kind !== "answers") warnOfUnlearned(setup, context);
  const networks = api.kind === "answers" ? await clusterNetworks(setup, options, context) : undefined;
  const isolated = api.kind === "answers" ? await isolatedServices(setup, options, context) : undefined;
  const notices = api.kind === "answers" ? await serviceNotices(setup, options, context) : undefined;
  const runner = await runnerFor(options, context);
  const facts = await context.progress(`looking at ${on ?? "this node"}`, async () => {
    const more = { serviceCIDRs: options["service-cidr"], api, networks, here, running };
    const state = await stateOf(options, context);
    if (here && api.kind === "answers") await warnOfNoNode(values, state, context);
    return nodeFacts(setup, more, state, runner);
  });
  const diagnoses = diagnose({ ...facts, ...(isolated && { isolated }), ...(notices && { notices }) });
  await print(
    options.output,
    diagnoses,
    () => [...diagnoses.map((one) => diagnosisText(one, context.style)), verdictOf(diagnoses, context)].join(""),
    context,
  );
  return diagnoses.some(({ state }) => state === "bad") ? 1 : 0;
}

function verdictOf(diagnoses: readonly Diagnosis[], { style }: Context): string {
  const count = (of: Diagnosis["state"]) => diagnoses.filter(({ state }) => state === of).length;
  const [bad, warnings, unknown] = [count("bad"), count("warning"), count("unknown")];
  const rest = [
    ...(warnings > 0 ? [counted(warnings, "warning")] : []),
    ...(unknown > 0 ? [`${unknown} unknown`] : []),
  ];
  const checks = counted(diagnoses.length, "check");
  const what = [bad > 0 ? `${bad} of ${checks} bad` : checks, ...rest].join(", ");
  return verdictText(bad === 0, what, "do what → says below each ✗, and run it again", style);
}

/** A laptop's sysctls say nothing about a cluster. */
async function warnOfNoNode(
  options: Parameters<typeof allNodes>[0],
  { addresses = [] }: NodeState,
  context: Context,
): Promise<void> {
  // What may not be listed is not known.
  const nodes = await allNodes(options, context).catch(() => new Map<string, ClusterNode>());
  const own = new Set(addresses.map(({ address }) => address));
  const isOwn = ({ addresses: its }: ClusterNode) => its.some((address) => own.has(address));
  if (nodes.size === 0 || nodes.has(hostname().toLowerCase()) || [...nodes.values()].some(isOwn)) return;
  const names = [...nodes.keys()].join(", ");
  context.warn(
    `this host is not a Node of the cluster, and what follows is about this host: give --on NODE; there are: ${names}`,
  );
}

function diagnosisText({ check, state, found, advice }: Diagnosis, style: Style): string {
  const signs = { good: style.good("✓"), warning: style.warn("!"), bad: style.bad("✗"), unknown: style.warn("?") };
  const what = advice === undefined ? "" : `\n    ${style.bold("→")} ${advice}`;
  return `${signs[state]} ${check}: ${found}${what}\n`;
}

type Options = CommandInput<typeof doctorOptions>["options"];

/**
 * Services in networks that nodes do not share, and whether an agent with that configuration serves them.
 *
 * @returns undefined: the cluster cannot be read, which is warned of
 */
async function isolatedServices(setup: AgentSetup, options: Options, context: Context): Promise<NodeFacts["isolated"]> {
  const access = { ...accessOf(options), file: [], node: undefined };
  const { networks, config } = setup;
  const read = (slicesOf: (state: ClusterView) => ReadonlySet<ServiceKey>) =>
    clusterNow(access, context, { slicesOf, networks, config, without: NO_NODE });
  try {
    const first = await read((state) => isolatedIn({ state }, state));
    const services = isolatedIn(podFacts(first), first.state);
    if (services.size === 0) return [];
    // Which of them are in a user-defined network is known only now.
    const cluster = await read(() => services);
    const { planner, pods } = planNode({ ...setup, services, cluster, nodeName: nodeNameOf({ node: undefined }) });
    return ownershipReport(planner.ownerships(), undefined, pods).services.flatMap(
      ({ service, frontends, podNetwork }): readonly IsolatedService[] =>
        podNetwork === undefined ? [] : [{ service, network: podNetwork, isServed: frontends !== "none" }],
    );
  } catch (error) {
    context.warn(
      `cannot read Services; those in networks that nodes do not share are not checked: ${errorText(error)}`,
    );
    return undefined;
  }
}

/**
 * What of all Services, and of this Node, is valid and does other than it seems to ask for.
 *
 * @returns undefined: the cluster cannot be read, which is warned of
 */
async function serviceNotices(setup: AgentSetup, options: Options, context: Context): Promise<NodeFacts["notices"]> {
  const access = { ...accessOf(options), file: [], node: options.on };
  const { networks, config } = setup;
  try {
    const cluster = await clusterNow(access, context, { networks, config });
    return planNode({ ...setup, cluster, nodeName: nodeNameOf({ node: options.on }) }).notices;
  } catch (error) {
    context.warn(`cannot read Services; what they ask for is not checked: ${errorText(error)}`);
    return undefined;
  }
}

/** The owner of a Service does not depend on the node. */
const NO_NODE = new Set(["node"] as const);

function isolatedIn(facts: PodNetworkFacts, state: ClusterView): ReadonlySet<ServiceKey> {
  const isIsolated = (key: ServiceKey) =>
    IP_FAMILIES.some((family) => podNetworkOf(facts, key, family, "none") !== undefined);
  return new Set([...state.keys()].filter(isIsolated));
}
