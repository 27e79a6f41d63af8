import type { IPFamily } from "@fairlead/core";
import { liveEnvironment, type NodeState, rulesOf, tablesOf } from "@fairlead/inspect";
import { type AskRoutes, createTracer, type Exploration, exploreAsking, type Packet } from "@fairlead/trace";
import { hasCluster } from "../../cluster/access.ts";
import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { UsageError } from "../../frame/errors.ts";
import { nodeNameOf } from "../../inputs/api-source.ts";
import { allNodes } from "../../inputs/source.ts";
import { demandThisHost } from "../../inputs/this-host.ts";
import { interfaceAddresses, oneKernel, orFailure, runnerFor, stateOf } from "../../node/access.ts";
import { askRoutes } from "../../node/ask-routes.ts";
import { type ReadRules, readRules } from "../../node/rules.ts";
import { print } from "../../output/output.ts";
import { fromSysdump } from "../../sysdump/dump.ts";
import { knownOf } from "./known.ts";
import type { traceOptions } from "./options.ts";
import { readPacket, withFacts } from "./packet.ts";
import { readTraceDestination } from "./planned.ts";
import { answerData, answerText } from "./show.ts";

type Values = CommandInput<typeof traceOptions>["options"];

export async function run({ options: given }: CommandInput<typeof traceOptions>, around: Context): Promise<ExitCode> {
  checkKernel(given);
  const { options: opened, context } = await fromSysdump(given, around);
  const { destination, planned, clusterCIDRs = [] } = await readTraceDestination(opened, context);
  const options = opened["cluster-cidr"].length > 0 ? opened : { ...opened, "cluster-cidr": clusterCIDRs };
  const live = options.rules === undefined && planned === undefined;
  const runner = await runnerFor(options, context);
  const { family } = destination;
  const state = live ? await context.progress("reading the kernel", () => stateOf(options, context)) : undefined;
  if (state && given.sysdump === undefined && options.on === undefined) await demandNode(options, state, context);
  const { rules, nftables, environment: host } = planned ?? (await rulesFor(options, state, family, context));
  const environment = withFacts(options, family, host, live);
  // An archive has routes, and no kernel that could be asked for a routing decision.
  const ask = live && given.sysdump === undefined && asksKernel(options) ? askRoutes(runner) : undefined;
  const asked = await arriving(readPacket(options, destination, environment), options, ask);
  const known = live ? await knownOf(runner, asked, options.sport !== undefined) : { packet: asked, connections: [] };
  const tracer = createTracer({ iptables: rules, nftables });
  const exploration = await (ask === undefined
    ? tracer.explore(known.packet, environment)
    : context.progress("asking for routes", () => exploreAsking(tracer, known.packet, environment, ask)));
  const answer = { ...known, exploration, routes: ask === undefined ? "not asked" : "asked" } as const;
  await print(
    options.output,
    answerData(answer, rules),
    () => answerText(answer, rules, options.rules !== undefined, context.style),
    context,
  );
  return arrives(exploration) ? 0 : 1;
}

/** The rules of a node, or of a file. */
async function rulesFor(
  { rules: file }: Values,
  state: NodeState | undefined,
  family: IPFamily,
  context: Context,
): Promise<ReadRules> {
  if (state === undefined) return readRules(file ?? "-", family, context);
  const environment = orFailure(() => liveEnvironment(state, family));
  const rules = orFailure(() => rulesOf(state, family), "rules");
  return { rules, nftables: tablesOf(state, family) ?? [], environment };
}

/** @throws UsageError for options that contradict each other */
function checkKernel(given: Values): void {
  oneKernel(given);
  if (given.watch) {
    throw new UsageError(
      "--watch was removed: nft monitor trace or xtables-monitor --trace follows packets, fairlead flows connections",
    );
  }
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
