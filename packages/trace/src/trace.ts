import type { RuleSet } from "@fairlead/netfilter";
import type { Environment, Outcome, Packet } from "./types.ts";

export interface Tracer {
  trace(packet: Packet, environment?: Environment): readonly Outcome[];
}

/** Prepares a rule set once for many packets. Later changes of the rule set are not seen. */
export function createTracer(ruleSet: RuleSet): Tracer {
  void ruleSet;
  return { trace: () => [] };
}

/**
 * Sends a packet through the tables as the kernel would and gives every way that it may take.
 *
 * @throws TraceError when the packet reaches a match or target that the tracer doesn't know, or a loop of chains
 */
export function trace(ruleSet: RuleSet, packet: Packet, environment: Environment = {}): readonly Outcome[] {
  return createTracer(ruleSet).trace(packet, environment);
}
