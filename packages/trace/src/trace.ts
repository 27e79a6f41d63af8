import { isIP } from "node:net";
import type { RuleSet, VirtualServerKey } from "@fairlead/netfilter";
import { CompiledRuleSet } from "./compile.ts";
import { Host } from "./host.ts";
import { outInterface, pathOf, STAGES_AT } from "./route.ts";
import { type End, Runner } from "./run.ts";
import type { Environment, Outcome, Packet } from "./types.ts";
import { endpointOf, startWalk, toArray, type Walk } from "./walk.ts";

/** More ways than this are a rule set gone wrong: two random choices over 300 endpoints each, one after the other. */
const MAX_OUTCOMES = 100_000;

export interface Tracer {
  /** As `trace`. */
  trace(packet: Packet, environment?: Environment): readonly Outcome[];
}

/** Prepares a rule set once for many packets. Later changes of the rule set may go unseen. */
export function createTracer(ruleSet: RuleSet): Tracer {
  const compiled = new CompiledRuleSet(ruleSet);
  return { trace: (packet, environment = {}) => runAll(compiled, packet, environment) };
}

/**
 * Sends a packet through the tables as the kernel would and gives every way that it may take: one, unless rules choose at
 * random. The packet itself decides where it begins, see `Packet.inInterface`.
 *
 * @throws TraceError when the packet reaches a match or target that the tracer doesn't know, a chain that isn't there, or a
 *   loop of chains; rules that it doesn't reach are not looked at
 * @throws RangeError for a packet whose addresses are not of its family, and for what a virtual server does that the
 *   tracer doesn't know: another scheduler or way of forwarding, a connection that was known before
 */
export function trace(ruleSet: RuleSet, packet: Packet, environment: Environment = {}): readonly Outcome[] {
  return createTracer(ruleSet).trace(packet, environment);
}

function runAll(ruleSet: CompiledRuleSet, packet: Packet, environment: Environment): readonly Outcome[] {
  checkPacket(packet);
  const host = new Host(environment, packet.family);
  const pending = [startWalk(packet)];
  const runner = new Runner(ruleSet, host, (other) => pending.push(other));
  const outcomes: Outcome[] = [];
  for (let walk = pending.pop(); walk !== undefined; walk = pending.pop()) {
    if (outcomes.length === MAX_OUTCOMES) throw new RangeError(`the packet has more than ${MAX_OUTCOMES} ways`);
    outcomes.push(outcomeOf(walk, runner.run(walk), host));
  }
  return outcomes;
}

function outcomeOf(walk: Walk, end: End, host: Host): Outcome {
  const name = outInterface(walk, host);
  return {
    probability: walk.probability,
    verdict: end.kind,
    ...(end.kind === "reject" ? { rejectWith: end.with } : {}),
    hook: walk.hook,
    table: STAGES_AT[walk.hook][walk.step] ?? "filter",
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
    recentlySeen: toArray(walk.seen),
  };
}

function serverKey({ family, protocol, address, port }: VirtualServerKey): VirtualServerKey {
  return { family, protocol, address, port };
}

function checkPacket(packet: Packet): void {
  const version = packet.family === "IPv4" ? 4 : 6;
  for (const address of [packet.source, packet.destination, packet.dnat?.address]) {
    if (address !== undefined && isIP(address) !== version) {
      throw new RangeError(`packet address "${address}": must be an ${packet.family} address`);
    }
  }
  if (packet.dnat !== undefined && (packet.state === undefined || packet.state === "NEW")) {
    throw new RangeError("packet.dnat: only a connection known before has a translation; state must not be NEW");
  }
}
