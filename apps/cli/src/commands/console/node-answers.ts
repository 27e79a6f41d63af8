import {
  type Answers,
  type DoctorAnswer,
  FlowRates,
  type FlowsAnswer,
  type LearnedAnswer,
  type LiveCluster,
  type NodePorts,
  RequestError,
  shownFlows,
  waysOf,
} from "@fairlead/console";
import { diagnose, flowAttribution, type NodeState, type StatePart } from "@fairlead/inspect";
import { openTracking, type Runner } from "@fairlead/kernel";
import type { CommandInput } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { configurationOf } from "../../inputs/configuration.ts";
import { interfaceAddresses, runnerFor, stateOf } from "../../node/access.ts";
import { agentAddressOf } from "../../node/agent-endpoint.ts";
import { agentOwnership } from "../../node/agent-ownership.ts";
import { podTracking } from "../../node/connections.ts";
import { apiFacts } from "../doctor/api.ts";
import { nodeFacts } from "../doctor/facts.ts";
import { listed } from "../flows/listed.ts";
import { mayBeRelayed, relaysOf } from "../flows/relays.ts";
import type { consoleOptions } from "./options.ts";

type Values = CommandInput<typeof consoleOptions>["options"];

/** What is asked of a node on request, and not periodically. */
export function nodeAnswers(
  cluster: LiveCluster,
  options: Values,
  context: Context,
  archived: boolean,
): Answers["gets"] {
  // This machine would answer in the place of the node.
  const unlessArchived = () => {
    if (archived)
      throw new RequestError(400, "an archive has no connections and no processes; look at the node itself");
  };
  const asked = async (query: URLSearchParams): Promise<AskedNode> => {
    await cluster.ready;
    const node = query.get("node") ?? cluster.nodeName;
    const { live } = options;
    if (!live && options.file.length > 0) throw new RequestError(400, `${node}: manifests have no kernel; add --live`);
    if (live && node !== cluster.nodeName) throw new RequestError(400, `${node}: --live looks at this host only`);
    if (node !== cluster.nodeName && !cluster.nodes.has(node)) throw new RequestError(404, `${node}: no such Node`);
    return askedNode(node, options, context);
  };
  const rates = new FlowRates();
  return {
    "/api/flows": async (query) => {
      unlessArchived();
      return flows(cluster, await asked(query), query.get("service"), rates);
    },
    "/api/networks/learned": async (query) => learned(await asked(query), options, context),
    "/api/doctor": async (query) => {
      unlessArchived();
      return doctor(await asked(query), options, context);
    },
  };
}

/** Sums up the connections of a node. */
export function nodeTraffic(
  cluster: LiveCluster,
  options: Values,
  context: Context,
): NonNullable<NodePorts["traffic"]> {
  const rates = new FlowRates();
  return async (node) => {
    const { found, since } = await tracked(cluster, await askedNode(node, options, context), null, rates);
    return { ...(since && { since }), ways: waysOf(found) };
  };
}

async function askedNode(node: string, options: Values, context: Context): Promise<AskedNode> {
  const { live } = options;
  const reached = { ...options, on: live ? undefined : node };
  const relays = relaysOf(reached, context);
  const state = (parts?: readonly StatePart[]) => stateOf(reached, context, parts);
  return { node, live, runner: await runnerFor(reached, context), state, relays };
}

interface AskedNode {
  readonly node: string;
  /** It is this host. */
  readonly live: boolean;
  readonly runner: Runner;
  /** Of its kernel; default: all parts. */
  readonly state: (parts?: readonly StatePart[]) => Promise<NodeState>;
  /** What its agent relays now. */
  readonly relays: ReturnType<typeof relaysOf>;
}

/** Connections that are read at most: a node may track a million. */
const MOST_CONNECTIONS = 100_000;

async function flows(
  cluster: LiveCluster,
  asked: AskedNode,
  service: string | null,
  rates: FlowRates,
): Promise<FlowsAnswer> {
  const { found, at, since } = await tracked(cluster, asked, service, rates);
  return { node: asked.node, at, ...(since && { since }), ...shownFlows(found) };
}

async function tracked(
  cluster: LiveCluster,
  { node, live, runner, state, relays }: AskedNode,
  service: string | null,
  rates: FlowRates,
) {
  const addresses = new Set(interfaceAddresses(await state(["addresses"])));
  const tracking = live ? await openTracking(runner) : podTracking(runner);
  const attribute = await cluster.withPlan(node, (planned) => flowAttribution(planned, addresses));
  const flowOf: typeof attribute = (connection, relayed) => {
    const flow = attribute(connection, relayed);
    return service === null || flow?.service === service ? flow : undefined;
  };
  const found = await listed(
    { node, tracking, flowOf, mayBeRelayed: mayBeRelayed(addresses), relays },
    MOST_CONNECTIONS,
  );
  const at = Date.now();
  // Of more there is no telling which are new.
  const since = found.length < MOST_CONNECTIONS ? rates.take(`${node} ${service ?? ""}`, found, at) : undefined;
  return { found, at, since };
}

async function learned({ node, live }: AskedNode, options: Values, context: Context): Promise<LearnedAnswer> {
  const at = { ...options, on: live ? undefined : node };
  const { networks } = await agentOwnership(agentAddressOf(at), context);
  return { node, at: Date.now(), ...(networks && { networks }) };
}

async function doctor(
  { node, live, runner, state }: AskedNode,
  options: Values,
  context: Context,
): Promise<DoctorAnswer> {
  const wanted = live ? { here: true } : { on: node };
  const quiet = { ...context, warn: () => {} };
  const { setup, running } = await configurationOf(options, wanted, quiet, { lenient: true });
  // Manifests have no API server, whatever the user's own kubeconfig names.
  const api = live ? ({ kind: "unasked" } as const) : await apiFacts({ ...options, on: node }, context);
  const facts = await nodeFacts(setup, { serviceCIDRs: [], api, here: live, running }, await state(), runner);
  return { node, at: Date.now(), diagnoses: diagnose(facts) };
}
