/** What the page of `console` asks, answered as the commands answer it. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { IP_FAMILIES, socketText } from "@fairlead/base";
import {
  type Answers,
  type Change,
  changedPlans,
  type DoctorAnswer,
  FlowRates,
  type FlowsAnswer,
  type LearnedAnswer,
  type LiveCluster,
  type NodePorts,
  RequestError,
  shownFlows,
  type TraceAnswer,
  type WhatIfAnswer,
  waysOf,
} from "@fairlead/console";
import type { IPFamily } from "@fairlead/core";
import {
  diagnose,
  dryRun,
  flowAttribution,
  type NodeState,
  type PlannedNode,
  parseTarget,
  type StatePart,
} from "@fairlead/inspect";
import { openTracking, type Runner } from "@fairlead/kernel";
import { accessTexts } from "../cluster/access.ts";
import type { consoleOptions } from "../facts/clusters.ts";
import { diffFacts, traceFacts } from "../facts/plans.ts";
import { type Command, type CommandInput, defineCommand } from "../frame/command.ts";
import type { Context } from "../frame/context.ts";
import { CommandFailure, UsageError } from "../frame/errors.ts";
import { type AgentSetup, demandReadable } from "../inputs/agent.ts";
import { configurationOf } from "../inputs/configuration.ts";
import { interfaceAddresses, runnerFor, stateOf } from "../node/access.ts";
import { agentOwnership } from "../node/agent-endpoint.ts";
import { podTracking } from "../node/connections.ts";
import { listed, mayBeRelayed, relaysOf } from "./attribution.ts";
import { apiFacts } from "./doctor/api.ts";
import { nodeFacts } from "./doctor/facts.ts";
import { rulesText } from "./plan.ts";
import { NO_DESTINATION, serviceDestination, socketDestination } from "./trace/packet.ts";

/** The same commands that a user calls. */
const DIFF = defineCommand(diffFacts, () => import("./diff.ts"));
const TRACE = defineCommand(traceFacts, () => import("./trace/run.ts"));

type Values = CommandInput<typeof consoleOptions>["options"];

/**
 * What other commands answer, on the objects that the console has.
 *
 * @param archive what --sysdump names; undefined: nodes are asked
 */
export function commandAnswers(
  cluster: LiveCluster,
  options: Values,
  context: Context,
  archive: string | undefined,
): Answers {
  return {
    gets: {
      "/api/trace": (query) => traced(cluster, { ...options, sysdump: archive }, query, context),
      ...nodeAnswers(cluster, options, context, archive !== undefined),
    },
    posts: { "/api/what-if": (_query, body) => whatIf(cluster, readChange(body), context) },
  };
}

async function traced(
  cluster: LiveCluster,
  options: Values,
  query: URLSearchParams,
  context: Context,
): Promise<TraceAnswer> {
  await cluster.ready;
  const node = query.get("node") ?? cluster.nodeName;
  const to = query.get("to") ?? "";
  const from = query.get("from") ?? "pod";
  const setup = cluster.setupOf(node);
  const { clusterCIDRs } = setup.config;
  const packet = { from: [from], to: [to], ...(clusterCIDRs.length > 0 && { "cluster-cidr": clusterCIDRs }) };
  const cidrs = clusterCIDRs.length === 0 ? "" : ` --cluster-cidr ${clusterCIDRs.join(",")}`;
  const command = `fairlead trace --from ${from} --to ${to}${cidrs}`;
  const said = (texts: Texts, around: Context) => saidBy<TraceAnswer["trace"]>(TRACE, [], texts, around);
  const [where, source, flags] = rulesOf(node, options) ?? [];
  if (where !== undefined) {
    const trace = await said({ ...packet, ...where }, context);
    return { at: Date.now(), source: `${source} of ${node}`, command: `${command} ${flags}`, trace };
  }
  const { text, addresses, socket } = await cluster.withPlan(node, async (planned) => {
    const socket = addressedTo(planned, to);
    const text = await planText(planned, setup, socket.startsWith("[") ? "IPv6" : "IPv4");
    return { text, socket, addresses: Object.values(planned.options.nodeIPs) };
  });
  const readStandardInput = async () => Buffer.from(text);
  const own = { rules: ["-"], ...(addresses.length > 0 && { "node-address": addresses }) };
  const trace = await said({ ...packet, to: [socket], ...own }, { ...context, readStandardInput });
  const at = cluster.changedAt;
  return { at, source: `plan of ${node}`, command: `fairlead plan … | ${command} --rules -`, trace };
}

/** What has rules, and the flags that name it; undefined: manifests, of which a plan has. */
function rulesOf(node: string, options: Values): readonly [where: Texts, source: string, flags: string] | undefined {
  const { live, sysdump, file } = options;
  if (sysdump !== undefined)
    return [{ sysdump: [sysdump], on: [node] }, "archive", `--sysdump ${sysdump} --on ${node}`];
  if (live) return [{ live: [""] }, "kernel", "--live"];
  return file.length > 0 ? undefined : [{ on: [node], ...accessTexts(options) }, "kernel", `--on ${node}`];
}

async function planText(
  { planner, mode }: PlannedNode,
  { config }: Pick<AgentSetup, "config">,
  family: IPFamily,
): Promise<string> {
  demandReadable(mode);
  return rulesText(await dryRun(planner.plan(family), { mode, config }));
}

type Families = NonNullable<WhatIfAnswer["families"]>;

/** More services than that are compared by `fairlead diff`: here a user waits. */
const MOST_SERVICES = 200;

async function whatIf(
  cluster: LiveCluster,
  change: Change & { readonly node?: string },
  context: Context,
): Promise<WhatIfAnswer> {
  await cluster.ready;
  const { node = cluster.nodeName } = change;
  const setup = cluster.setupOf(node);
  const { before, after, setup: changed, ...found } = await changedPlans(cluster, setup, node, change);
  const answer = { planAt: cluster.changedAt, node, ...found };
  if (found.services.length > MOST_SERVICES) return answer;
  const folder = await mkdtemp(join(tmpdir(), "fairlead-what-if-"));
  try {
    const families: Families[number][] = [];
    for (const family of IP_FAMILIES) {
      const [old, now] = [join(folder, "before.txt"), join(folder, "after.txt")];
      await writeFile(old, await planText(before, setup, family));
      await writeFile(now, await planText(after, changed, family));
      const addresses = Object.values(before.options.nodeIPs);
      const given = { family: [family.toLowerCase()], "traffic-only": [""], "node-address": addresses };
      families.push(await saidBy<Families[number]>(DIFF, [old, now], given, context));
    }
    return { ...answer, families };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function readChange(body: unknown): Change & { readonly node?: string } {
  const text = (name: string) => {
    const value: unknown = typeof body === "object" && body !== null ? Reflect.get(body, name) : undefined;
    return typeof value === "string" ? value : "";
  };
  const change = { manifests: text("manifests"), excludeCIDR: text("cidr"), configuration: text("configuration") };
  if (Object.values(change).every((one) => one.trim() === "")) {
    throw new RequestError(400, "give manifests, a configuration or a CIDR");
  }
  const node = text("node");
  return node === "" ? change : { ...change, node };
}

/** What is asked of a node on request, and not periodically. */
function nodeAnswers(cluster: LiveCluster, options: Values, context: Context, archived: boolean): Answers["gets"] {
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
    const { found, counted } = await tracked(cluster, await askedNode(node, options, context), null, rates);
    return { ...(counted?.since && { since: counted.since }), ways: waysOf(found) };
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
  const { found, at, counted } = await tracked(cluster, asked, service, rates);
  return { node: asked.node, at, ...(counted && { counts: counted.counts }), ...shownFlows(found) };
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
  // A full answer does not show which connections are new.
  const counted = found.length < MOST_CONNECTIONS ? rates.take(`${node} ${service ?? ""}`, found, at) : undefined;
  return { found, at, counted };
}

async function learned({ node, live }: AskedNode, options: Values, context: Context): Promise<LearnedAnswer> {
  const at = { ...options, on: live ? undefined : node };
  const { networks } = await agentOwnership(at, context);
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

/**
 * A destination as `fairlead trace --to` takes it where only rules are known: a service is looked up in the plan, an
 * address stays what it is.
 */
function addressedTo(planned: PlannedNode, to: string): string {
  try {
    if (socketDestination({ to }) !== undefined) return to;
    const target = parseTarget(to, "default");
    const found = target.kind === "address" ? undefined : serviceDestination(planned, target, to);
    if (found?.port !== undefined) return `${socketText(found.address, found.port)}/${found.protocol}`;
  } catch (error) {
    if (error instanceof RangeError) throw new RequestError(400, `--to=${to}: ${NO_DESTINATION}`);
    if (error instanceof UsageError || error instanceof CommandFailure) throw new RequestError(400, error.message);
    throw error;
  }
  throw new RequestError(400, `--to=${to}: there is no such service with a ClusterIP`);
}

type Texts = Readonly<Record<string, readonly string[] | undefined>>;

/**
 * What a command prints with `-o json`: the page says nothing that the command does not.
 *
 * @param options by long name; undefined: not given
 * @throws RequestError with the command's own words
 */
async function saidBy<T>(command: Command, args: readonly string[], options: Texts, context: Context): Promise<T> {
  let printed = "";
  const out = (text: string) => {
    printed += text;
  };
  const given = Object.entries({ ...options, output: ["json"] });
  const texts = new Map(given.flatMap(([name, values]) => (values === undefined ? [] : [[name, values] as const])));
  try {
    await command.run(args, texts, { ...context, out, warn: () => {}, progress: (_what, work) => work() });
  } catch (error) {
    if (error instanceof UsageError || error instanceof CommandFailure) throw new RequestError(400, error.message);
    throw error;
  }
  return JSON.parse(printed);
}
