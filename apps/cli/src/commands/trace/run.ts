/** `trace`: follows a packet through the rules of a plan, a kernel or a file. */

import type { IPFamily } from "@fairlead/core";
import {
  dryRun,
  liveEnvironment,
  type NodeState,
  type PlannedNode,
  parseTarget,
  rulesOf,
  type Target,
  tablesOf,
} from "@fairlead/inspect";
import { type Connection, listConnections, type Runner } from "@fairlead/kernel";
import { type AskRoutes, createTracer, type Exploration, exploreAsking, type Packet } from "@fairlead/trace";
import { hasCluster } from "../../cluster/access.ts";
import type { traceOptions } from "../../facts/plans.ts";
import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure, UsageError } from "../../frame/errors.ts";
import { print } from "../../frame/output.ts";
import { type AgentSetup, demandReadable } from "../../inputs/agent.ts";
import { namespaceOf, nodeNameOf } from "../../inputs/cluster-access.ts";
import { configurationOf, sayConfiguration } from "../../inputs/configuration.ts";
import { servicesLike } from "../../inputs/names.ts";
import { demandThisHost, plannedNode } from "../../inputs/planned.ts";
import { allNodes } from "../../inputs/source.ts";
import { interfaceAddresses, oneKernel, orFailure, runnerFor, stateOf } from "../../node/access.ts";
import { collect } from "../../node/connections.ts";
import { type HeldRules, readRules, stateOfParts } from "../../node/rules.ts";
import { fromSysdump } from "../../sysdump/dump.ts";
import {
  type Destination,
  NO_DESTINATION,
  readPacket,
  serviceDestination,
  socketDestination,
  withFacts,
} from "./packet.ts";
import { askRoutes } from "./routes.ts";
import { answerData, answerText } from "./text.ts";

type Values = CommandInput<typeof traceOptions>["options"];

export async function run({ options: given }: CommandInput<typeof traceOptions>, around: Context): Promise<ExitCode> {
  oneKernel(given);
  const { options: opened, context } = await fromSysdump(given, around);
  const { destination, planned, clusterCIDRs = [] } = await readTraceDestination(opened, context);
  const options = opened["cluster-cidr"].length > 0 ? opened : { ...opened, "cluster-cidr": clusterCIDRs };
  const live = options.rules === undefined && planned === undefined;
  const runner = await runnerFor(options, context);
  const { family } = destination;
  const state = live ? await context.progress("reading the kernel", () => stateOf(options, context)) : undefined;
  if (state && given.sysdump === undefined && options.on === undefined) await demandNode(options, state, context);
  const { ruleSet, nftables, environment: host } = planned ?? (await rulesFor(options, state, family, context));
  const environment = withFacts(options, family, host, live);
  // An archive has routes, and no kernel that could be asked for a routing decision.
  const ask = live && given.sysdump === undefined && asksKernel(options) ? askRoutes(runner) : undefined;
  const asked = await arriving(readPacket(options, destination, environment), options, ask);
  const known = live ? await knownOf(runner, asked, options.sport !== undefined) : { packet: asked, connections: [] };
  const tracer = createTracer({ iptables: ruleSet, nftables });
  const exploration = await (ask === undefined
    ? tracer.explore(known.packet, environment)
    : context.progress("asking for routes", () => exploreAsking(tracer, known.packet, environment, ask)));
  const routes = ask === undefined ? "not asked" : "asked";
  const answer = { ...known, owner: destination.owner, exploration, routes } as const;
  await print(
    options.output,
    answerData(answer, ruleSet),
    () => answerText(answer, ruleSet, options.rules !== undefined, context.style),
    context,
  );
  return arrives(exploration) ? 0 : 1;
}

async function rulesFor(
  { rules: file }: Values,
  state: NodeState | undefined,
  family: IPFamily,
  context: Context,
): Promise<HeldRules> {
  if (state === undefined) return readRules(file ?? "-", family, context);
  const environment = orFailure(() => liveEnvironment(state, family));
  const ruleSet = orFailure(() => rulesOf(state, family), "rules");
  return { ruleSet, nftables: tablesOf(state, family) ?? [], environment };
}

/** A node that is named is not taken for this host. */
async function demandNode(options: Values, state: NodeState, context: Context): Promise<void> {
  if (options.node === undefined || (options.file.length === 0 && !hasCluster(options, context))) return;
  const nodes = await allNodes(options, context).catch(() => undefined);
  demandThisHost(options, interfaceAddresses(state), nodes?.get(nodeNameOf(options)));
}

/** What is given of the host stands in place of its own addresses and routes. */
function asksKernel({ route, "node-address": addresses }: Values): boolean {
  return route.length === 0 && addresses.length === 0;
}

/** Where nothing else is said the packet comes in by where answers to it go, with all rules of policy routing. */
async function arriving(packet: Packet, options: Values, ask: AskRoutes | undefined): Promise<Packet> {
  const { family, source, protocol, inInterface } = packet;
  if (ask === undefined || inInterface === undefined || options["in-interface"] !== undefined) return packet;
  const [back] = await ask([{ family, destination: source, protocol, mark: 0 }]);
  return back?.kind === "unicast" ? { ...packet, inInterface: back.outInterface } : packet;
}

function arrives({ outcomes, undecided }: Exploration): boolean {
  return (
    undecided.length === 0 &&
    outcomes.every(({ verdict, routeUnknown }) => verdict === "accept" && routeUnknown === undefined)
  );
}

/** Where a packet goes, with the rules that it meets where those are a plan's. */
export interface TraceDestination {
  readonly destination: Destination;
  /** What an agent would write for the manifests; absent: the rules are a file's or a kernel's. */
  readonly planned?: HeldRules;
  /** Where pods are, as the proxy has it; absent: it was not asked. */
  readonly clusterCIDRs?: readonly string[];
}

/** Reads --to. A service by its name or node port is looked up in the manifests, or else in the cluster. */
async function readTraceDestination(options: Values, context: Context): Promise<TraceDestination> {
  const { to, file, rules, live, on } = options;
  const socket = socketDestination(options);
  const plans = file.length > 0 && rules === undefined && on === undefined && !live;
  const here = !plans && rules === undefined && on === undefined;
  if (socket !== undefined && !plans) return { destination: socket, ...(await podCIDRs(options, here, context)) };
  const target = socket === undefined ? targetOf(to, await namespaceOf(options, context)) : undefined;
  // Rules from elsewhere: the owner of the address is unknown there.
  if (target?.kind === "host" && rules !== undefined && file.length === 0) throw noDestination(to);
  const everywhere = !plans && target?.kind !== "nodePort";
  const values = { ...options, node: options.node ?? on };
  const proxy = { on, here, any: everywhere };
  const { planned, setup } = await plannedNode(values, context, { everywhere, proxy, lenient: true });
  demandReadable(planned.mode);
  const destination = socket ?? (await destinationOf(planned, target, options, context));
  const { clusterCIDRs } = setup.config;
  return { destination, clusterCIDRs, ...(plans && { planned: await plannedRules(planned, setup, destination) }) };
}

/** Only where a sender is named by what it is, of a kernel that is looked at. */
async function podCIDRs(
  options: Values,
  here: boolean,
  context: Context,
): Promise<Pick<TraceDestination, "clusterCIDRs">> {
  const { from, on, "cluster-cidr": given } = options;
  if ((from !== "pod" && from !== "outside") || given.length > 0 || (!here && on === undefined)) return {};
  const configured = await configurationOf(options, { on, here }, context, { anyMode: true, lenient: true });
  sayConfiguration(configured, context);
  demandReadable(configured.setup.mode);
  return { clusterCIDRs: configured.setup.config.clusterCIDRs };
}

function targetOf(to: string | undefined, namespace: string): Exclude<Target, { kind: "address" }> {
  try {
    const target = parseTarget(to ?? "", namespace);
    if (target.kind !== "address") return target;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  throw noDestination(to);
}

function noDestination(to: string | undefined): UsageError {
  return new UsageError(`--to${to === undefined ? "" : `=${to}`}: ${NO_DESTINATION}`);
}

async function destinationOf(
  planned: PlannedNode,
  target: Exclude<Target, { kind: "address" }> | undefined,
  options: Values,
  context: Context,
): Promise<Destination> {
  const { to = "" } = options;
  const found = target && serviceDestination(planned, target, to);
  if (found !== undefined) return found;
  const like = target?.kind === "service" ? await servicesLike(target.service, options, context) : "";
  throw new CommandFailure(`--to=${to}: there is no such service with a ClusterIP${like}`);
}

async function plannedRules(
  { planner, mode, options }: PlannedNode,
  { config }: AgentSetup,
  { family }: Destination,
): Promise<HeldRules> {
  const own = options.nodeIPs[family];
  const host = { localAddresses: own === undefined ? [] : [own] };
  return stateOfParts(await dryRun(planner.plan(family), { mode, config }), family, host);
}

export interface TrackedPacket {
  /** The packet belongs to a connection that is known already, and goes where that was sent. */
  readonly packet: Packet;
  /** Other connections from there to there: where each of them leads. */
  readonly connections: readonly Connection[];
}

/** @param exact whether the packet's source port is the one meant; else it is a new connection's */
async function knownOf(runner: Runner, packet: Packet, exact: boolean): Promise<TrackedPacket> {
  const { family, source, destination, sport, dport } = packet;
  const protocol = protocolOf(packet.protocol);
  if (protocol === undefined) return { packet, connections: [] };
  const found = (await connectionsFrom(runner, family, protocol, source)).filter(
    ({ original }) => original.destination === destination && original.destinationPort === dport,
  );
  const own = exact ? found.find(({ original }) => original.sourcePort === sport) : undefined;
  if (own === undefined) return { packet, connections: found };
  const { source: address, sourcePort: port } = own.reply;
  const translated = address === destination && port === dport ? {} : { dnat: { address, port } };
  return { packet: { ...packet, state: "ESTABLISHED", ...translated }, connections: found };
}

function protocolOf(name: string): "TCP" | "UDP" | "SCTP" | undefined {
  return (["TCP", "UDP", "SCTP"] as const).find((one) => one.toLowerCase() === name);
}

/** None where conntrack-tools are missing or not permitted. */
async function connectionsFrom(
  runner: Runner,
  family: Packet["family"],
  protocol: "TCP" | "UDP" | "SCTP",
  source: string,
) {
  try {
    return await collect(listConnections(runner, family, protocol, { source }));
  } catch {
    return [];
  }
}
