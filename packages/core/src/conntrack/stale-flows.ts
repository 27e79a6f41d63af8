import type { Protocol } from "../objects.ts";
import type { ServicePortGroup } from "../plan.ts";
import type { FrontendLookup } from "../planner/lookup.ts";
import type { ConntrackFlow } from "./flow.ts";
import { conversing, ServingIndex } from "./serving-index.ts";

/** Further knowledge that narrows what is deleted. */
export interface StaleFlowOptions {
  /**
   * The node's own addresses. With them entries of a node port are cleaned after the last endpoint as well, and packets
   * to that port of another host are not taken for a node port's. Without them, as upstream: whatever was sent to that
   * port, and nothing while there are no serving endpoints.
   */
  readonly nodeAddresses?: { has(address: string): boolean };
}

/**
 * The entries that keep clients on endpoints that are gone: their original destination is one of our frontends and the
 * answer comes from no serving endpoint of it, policies and topology aside. UDP as upstream. SCTP, too, whose
 * heartbeats would keep such an entry for ever, but there every endpoint that still exists counts, ready or not: an
 * association goes on as a TCP connection would. TCP is left: its entries go only where that is asked for (`orphans`).
 * Frontends that are left to another network are not ours. Entries are read once, in any order.
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
  const group = lookup.atNodePort(protocol, originalPort);
  return group !== undefined && isOfNodePort(group, flow, nodeAddresses) ? group : undefined;
}

/** By two of three signs where the node's addresses are known: a mode may serve addresses that no interface has. */
function isOfNodePort(
  group: ServicePortGroup,
  { originalDestination, originalPort, replySource, replyPort }: ConntrackFlow,
  nodeAddresses: StaleFlowOptions["nodeAddresses"],
): boolean {
  const served = conversing(group).length > 0;
  if (nodeAddresses === undefined) return served;
  const translated = replySource !== originalDestination || replyPort !== originalPort;
  return nodeAddresses.has(originalDestination) ? served || translated : served && translated;
}

/** The protocols whose entries outlive their endpoint. */
export function connectionless(protocol: string): Protocol | undefined {
  if (protocol === "udp") return "UDP";
  return protocol === "sctp" ? "SCTP" : undefined;
}
