import type { Protocol } from "../objects.ts";
import type { ServicePortGroup } from "../plan.ts";
import type { FrontendLookup } from "../planner/lookup.ts";
import type { ConntrackFlow } from "./flow.ts";
import { conversing, ServingIndex } from "./serving-index.ts";

/** Further knowledge that narrows what is deleted. */
export interface StaleFlowOptions {
  /**
   * The node's own addresses. With them an entry counts as a node port's only if it was sent to one of them; without
   * them, as upstream, if it was sent to that port wherever.
   */
  readonly nodeAddresses?: { has(address: string): boolean };
}

/**
 * The entries that keep clients on endpoints that are gone: their original destination is one of our frontends and the
 * answer comes from no serving endpoint of it, policies and topology aside. Node ports count only while they have
 * serving endpoints. UDP as upstream. SCTP, too, whose heartbeats would keep such an entry for ever, but there every
 * endpoint that still exists counts, ready or not: an association goes on as a TCP connection would. TCP is left: its
 * entries go only where that is asked for (`orphans`). Frontends that are left to another network are not ours. Entries
 * are read once, in any order.
 *
 * @param lookup `Planner.lookup(family)`; flows of the other family are passed over
 */
export function* staleFlows<T extends ConntrackFlow>(
  lookup: FrontendLookup,
  flows: Iterable<T>,
  options: StaleFlowOptions = {},
): Generator<T, void, void> {
  const serving = new ServingIndex();
  for (const flow of flows) {
    const group = groupOf(lookup, flow, options);
    if (group !== undefined && !serving.serves(group, flow)) yield flow;
  }
}

function groupOf(
  lookup: FrontendLookup,
  flow: ConntrackFlow,
  { nodeAddresses }: StaleFlowOptions,
): ServicePortGroup | undefined {
  const protocol = connectionless(flow.protocol);
  const { family, originalDestination, originalPort } = flow;
  if (protocol === undefined || originalPort === undefined || family !== lookup.family) return undefined;
  const addressed = lookup.at(protocol, originalDestination, originalPort);
  if (addressed !== undefined) return addressed;
  if (nodeAddresses !== undefined && !nodeAddresses.has(originalDestination)) return undefined;
  const group = lookup.atNodePort(protocol, originalPort);
  return group === undefined || conversing(group).length === 0 ? undefined : group;
}

/** The protocols whose entries outlive their endpoint. */
export function connectionless(protocol: string): Protocol | undefined {
  if (protocol === "udp") return "UDP";
  return protocol === "sctp" ? "SCTP" : undefined;
}
