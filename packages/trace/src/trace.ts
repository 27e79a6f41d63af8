/** One trace, and all that can happen to a packet. */

import type { RuleSet, VirtualServerKey } from "@fairlead/netfilter";
import type { Environment, RouteAnswer, RouteQuery } from "./environment.ts";
import { Host } from "./host.ts";
import { type Exploration, type Outcome, TraceError, type Undecided } from "./outcome.ts";
import { checkPacket, type Packet, type Rules } from "./packet.ts";
import { outInterface, pathOf } from "./route.ts";
import { Runner } from "./run.ts";
import { Stages } from "./stages.ts";
import { endpointOf, startWalk, toArray, type Walk, type WalkContext } from "./walk.ts";
import { type End, PendingWalks } from "./ways.ts";

/** Rules that are made ready for many packets; chains are prepared when a packet first reaches them. */
export interface Tracer {
  /** As `trace`. */
  trace(packet: Packet, environment?: Environment): readonly Outcome[];
  /** As `explore`. */
  explore(packet: Packet, environment?: Environment, options?: ExploreOptions): Exploration;
}

/** How an exploration gives its ways. */
export interface ExploreOptions {
  /**
   * Draws of one chain that lead to the same are one way, with the sum of their chances and the visits of one of them.
   * The outcome of the packet is the same as without it, at a lower cost. Default: false.
   */
  readonly merged?: boolean;
}

/** Prepares rules once for many packets. Later changes of them may go unseen. */
export function createTracer(rules: RuleSet | Rules): Tracer {
  const stages = new Stages(rules);
  return {
    trace: (packet, environment = {}) => traceAll(stages, packet, environment),
    explore: (packet, environment = {}, { merged = false } = {}) =>
      runAll(stages, packet, environment, { assuming: true, merged }),
  };
}

/**
 * Sends a packet through the tables as the kernel would and gives every way that it may take: one, unless rules choose
 * at random. The packet itself decides where it begins, see `Packet.inInterface`.
 *
 * @throws TraceError when the packet reaches a match or target that the tracer doesn't know, a chain that isn't there,
 * or a
 *   loop of chains; rules that it doesn't reach are not looked at
 * @throws PacketError for a packet or an environment that cannot be: addresses, ports, mark
 * @throws RangeError for what a virtual server does that the tracer doesn't know: another scheduler or way of
 * forwarding, a
 *   connection that was known before
 */
export function trace(rules: RuleSet | Rules, packet: Packet, environment: Environment = {}): readonly Outcome[] {
  return createTracer(rules).trace(packet, environment);
}

/**
 * As `trace`, for rules of any origin: where a match can't be decided the packet takes both ways, and each outcome says
 * what it takes for granted. Ways that end at a target that the tracer doesn't know are distinguished. Nothing is
 * guessed.
 *
 * @throws PacketError as `trace`
 * @throws RangeError as `trace`, and when there are too many ways
 */
export function explore(
  rules: RuleSet | Rules,
  packet: Packet,
  environment: Environment = {},
  options: ExploreOptions = {},
): Exploration {
  return createTracer(rules).explore(packet, environment, options);
}

/** Answers as many queries as are asked, in their order. */
export type AskRoutes = (queries: readonly RouteQuery[]) => Promise<readonly RouteAnswer[]>;

/**
 * As `explore`, where another program has to be asked for each routing decision, the kernel for example: the packet is
 * sent on its way again with what was answered, until nothing is asked anymore.
 *
 * @throws PacketError and RangeError as `explore`
 */
export async function exploreAsking(
  tracer: Tracer,
  packet: Packet,
  environment: Environment,
  ask: AskRoutes,
): Promise<Exploration> {
  const known = new Map<string, RouteAnswer>();
  for (;;) {
    const open = new Map<string, RouteQuery>();
    const route = (query: RouteQuery): RouteAnswer => {
      const key = JSON.stringify(query);
      const answer = known.get(key);
      if (answer === undefined) open.set(key, query);
      return answer ?? NOT_ASKED;
    };
    const exploration = tracer.explore(packet, { ...environment, route });
    if (open.size === 0) return exploration;
    const answers = await ask([...open.values()]);
    for (const [at, key] of [...open.keys()].entries()) known.set(key, answers[at] ?? NOT_ASKED);
  }
}

/** More ways than this are a rule set gone wrong: two random choices over 300 endpoints each, one after the other. */
const MAX_OUTCOMES = 100_000;

function traceAll(stages: Stages, packet: Packet, environment: Environment): readonly Outcome[] {
  const { outcomes, undecided } = runAll(stages, packet, environment, { assuming: false, merged: false });
  for (const { problem } of undecided) throw problem;
  return outcomes;
}

function runAll(
  stages: Stages,
  packet: Packet,
  environment: Environment,
  how: Pick<WalkContext, "assuming" | "merged">,
): Exploration {
  checkPacket(packet);
  const host = new Host(environment, packet.family);
  const pending = new PendingWalks(startWalk(packet), how);
  const runner = new Runner(stages, { host, fork: (other) => pending.push(other), ...how });
  const outcomes: Outcome[] = [];
  const undecided: Undecided[] = [];
  for (let walk = pending.pop(); walk !== undefined; walk = pending.pop()) {
    if (outcomes.length === MAX_OUTCOMES) throw new RangeError(`the packet has more than ${MAX_OUTCOMES} ways`);
    try {
      outcomes.push(outcomeOf(walk, runner.run(walk), host));
    } catch (error) {
      if (!(error instanceof TraceError)) throw error;
      undecided.push(undecidedOf(walk, error));
      if (!how.assuming) break;
    }
  }
  return { outcomes, undecided };
}

function undecidedOf({ probability, visits, assumed }: Walk, problem: TraceError): Undecided {
  return { probability, problem, visits: toArray(visits), assumed: toArray(assumed) };
}

function outcomeOf(walk: Walk, end: End, host: Host): Outcome {
  const name = outInterface(walk, host);
  return {
    probability: walk.probability,
    ...verdictOf(end),
    ...(walk.routeUnknown !== undefined && { routeUnknown: walk.routeUnknown }),
    hook: walk.hook,
    table: end.kind === "refused" ? "routing" : (walk.stage?.name ?? "filter"),
    ...(end.kind === "accept" ? { path: pathOf(walk) } : {}),
    destination: endpointOf(walk.destination),
    translated: walk.translated,
    redirected: walk.redirected,
    ...(walk.server !== undefined && { virtualServer: serverKey(walk.server) }),
    ...(walk.template !== undefined && { template: walk.template }),
    masqueraded: walk.masqueraded,
    source: endpointOf(walk.source),
    mark: walk.mark,
    ...(name === undefined || name === "" ? {} : { outInterface: name }),
    visits: toArray(walk.visits),
    ...(walk.assumed !== undefined && { assumed: toArray(walk.assumed) }),
    recentlySeen: toArray(walk.seen),
    remembered: toArray(walk.remembered),
  };
}

function verdictOf(end: End): Pick<Outcome, "verdict" | "rejectWith" | "noRoute"> {
  if (end.kind === "reject") return { verdict: "reject", rejectWith: end.with };
  if (end.kind !== "refused") return { verdict: end.kind };
  const { problem: noRoute, rejectWith } = end;
  return rejectWith === undefined ? { verdict: "drop", noRoute } : { verdict: "reject", rejectWith, noRoute };
}

function serverKey({ family, protocol, address, port }: VirtualServerKey): VirtualServerKey {
  return { family, protocol, address, port };
}

const NOT_ASKED: RouteAnswer = { kind: "unknown", problem: "the route is not known" };
