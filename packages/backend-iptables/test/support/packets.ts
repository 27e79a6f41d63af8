import type { RuleSet } from "@fairlead/netfilter";
import { traceSlots } from "@fairlead/testkit/histories";
import type { Outcome } from "@fairlead/trace";

/** The packet goes its way as if there were no proxy. */
const UNSERVED = "unserved";

/** Where packets to every frontend that a slot can have end, by a name for the packet. */
export function whereabouts(ruleSet: RuleSet, slots: readonly number[]): ReadonlyMap<string, string> {
  const traced = [...traceSlots(ruleSet, slots)];
  return new Map(traced.map(([packet, outcomes]) => [packet, outcomes.map(endOf).sort().join(" | ")]));
}

function endOf({ verdict, destination, masqueraded, probability, translated }: Outcome): string {
  if (verdict !== "accept") return verdict;
  if (!translated) return UNSERVED;
  const end = `${destination.address}:${destination.port}`;
  return `${end}${masqueraded ? " as the node" : ""} ${probability.toFixed(4)}`;
}

/**
 * Whether a packet's end is right between two states: as in one of them, or refused where one of them does not serve
 * it.
 */
export function isEndBetween(end: string, before: string | undefined, after: string | undefined): boolean {
  if (end === before || end === after) return true;
  return (before === UNSERVED || after === UNSERVED) && (end === "drop" || end === "reject");
}
