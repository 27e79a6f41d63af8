import type { PlanChange } from "../plan.ts";
import type { FrontendLookup } from "../planner/lookup.ts";
import type { ConntrackFlow } from "./flow.ts";
import { conversing, endpointKey, ServingIndex } from "./serving-index.ts";

/** An endpoint that a service port had and has no more. */
export interface GoneEndpoint {
  /** `ServicePortGroup.id`. */
  readonly group: string;
  /** Canonical address. */
  readonly address: string;
  /** The endpoint's port, 1 to 65535. */
  readonly port: number;
}

const NONE: ReadonlySet<string> = new Set();

/**
 * The endpoints of TCP ports that a change takes away: no EndpointSlice names them anymore, ready or not. A service
 * that goes as a whole, or to another network, takes none with it: its connections are left to conntrack. Of a planner
 * with `PlannerOptions.resetStaleTCP`; without it those that only turned unready count as gone, too.
 */
export function* goneEndpoints({ groups }: PlanChange): Generator<GoneEndpoint, void, void> {
  for (const [group, { before, after }] of groups) {
    if (before?.protocol !== "TCP" || after === undefined) continue;
    const has = conversing(after);
    // Mostly an endpoint that stays is the same object.
    const same = new Set(has);
    const missing = conversing(before).filter((endpoint) => !same.has(endpoint));
    const left = missing.length === 0 ? NONE : new Set(has.map(endpointKey));
    for (const endpoint of missing) {
      if (!left.has(endpointKey(endpoint))) yield { group, address: endpoint.address, port: endpoint.port };
    }
  }
}

/**
 * Reports which TCP entries keep their clients on such endpoints: their original destination is one of our frontends,
 * and the answer comes from an endpoint that its service port has lost since and that has not come back. Nothing is
 * said of what we never proxied to, so that connections which others translated stay.
 *
 * @param lookup `Planner.lookup(family)`; flows of the other family are passed over
 */
export function orphans(lookup: FrontendLookup, gone: Iterable<GoneEndpoint>): (flow: ConntrackFlow) => boolean {
  const lost = new Map<string, Set<string>>();
  for (const endpoint of gone) {
    const known = lost.get(endpoint.group);
    if (known === undefined) lost.set(endpoint.group, new Set([endpointKey(endpoint)]));
    else known.add(endpointKey(endpoint));
  }
  const serving = new ServingIndex();
  return (flow) => {
    const { family, protocol, originalDestination, originalPort, replySource, replyPort } = flow;
    if (protocol !== "tcp" || family !== lookup.family) return false;
    if (originalPort === undefined || replyPort === undefined) return false;
    const group = lookup.at("TCP", originalDestination, originalPort) ?? lookup.atNodePort("TCP", originalPort);
    if (group === undefined || serving.serves(group, flow)) return false;
    return lost.get(group.id)?.has(endpointKey({ address: replySource, port: replyPort })) ?? false;
  };
}
