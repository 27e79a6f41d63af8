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

/** Refused or not served by anybody: which of them does not matter between two states. */
const NOWHERE: readonly (string | undefined)[] = [UNSERVED, "drop", "reject"];

/**
 * Whether a packet's end is right between two states: as in one of them, or refused where one of them leads it nowhere
 * (nat has let go of an address, and the rule of filter that drops some of its clients goes after that).
 */
export function isEndBetween(end: string, before: string | undefined, after: string | undefined): boolean {
  if (end === before || end === after) return true;
  return (end === "drop" || end === "reject") && (NOWHERE.includes(before) || NOWHERE.includes(after));
}
