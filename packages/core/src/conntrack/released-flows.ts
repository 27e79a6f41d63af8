import { addressWords, PrefixMap } from "@fairlead/base";
import type { IPFamily } from "../objects.ts";
import type { ReleasedGroup } from "../planner/step.ts";
import type { ConntrackFlow } from "./flow.ts";
import { frontendLookup } from "./flow-lookup.ts";
import { ServingIndex } from "./serving-index.ts";
import { connectionless } from "./stale-flows.ts";

/**
 * The entries that our own DNAT made for groups which another network has taken over: without deleting them, once, a
 * busy client would stay with us for ever. An entry is ours if it goes to one of the released frontends and is answered
 * by an endpoint that we proxied to, or, where these are unknown, if it was translated to what cannot be the
 * other network's; whatever else goes there is not touched, nor are clients that we go on serving.
 *
 * @param groups `PlanStep.released`
 */
export function* releasedFlows<T extends ConntrackFlow>(
  groups: Iterable<ReleasedGroup>,
  flows: Iterable<T>,
): Generator<T, void, void> {
  const all = [...groups];
  const lookups = { IPv4: frontendLookup("IPv4", all), IPv6: frontendLookup("IPv6", all) } satisfies Record<
    IPFamily,
    unknown
  >;
  const serving = new ServingIndex();
  const clients = new Clients();
  for (const flow of flows) {
    const protocol = connectionless(flow.protocol);
    if (protocol === undefined || flow.originalPort === undefined) continue;
    const lookup = lookups[flow.family];
    const addressed = lookup.at(protocol, flow.originalDestination, flow.originalPort);
    const group = addressed ?? lookup.atNodePort(protocol, flow.originalPort);
    if (group === undefined || !clients.released(group, flow)) continue;
    const ours = group.mayBeForeign === undefined ? serving.serves(group, flow) : isOurs(flow, group.mayBeForeign);
    if (ours) yield flow;
  }
}

function isOurs(flow: ConntrackFlow, mayBeForeign: (address: string) => boolean): boolean {
  const { originalDestination, originalPort, replySource, replyPort } = flow;
  const translated = replySource !== originalDestination || replyPort !== originalPort;
  return translated && !mayBeForeign(replySource);
}

/** Whose flows were released: the lists of CIDRs are long, and mostly the same one. */
class Clients {
  readonly #byList = new Map<readonly string[], PrefixMap<object>>();

  /** Also where the client is not known. */
  released({ clients }: ReleasedGroup, { originalSource }: ConntrackFlow): boolean {
    if (clients === undefined || originalSource === undefined) return true;
    return this.#prefixes(clients).find(addressWords(originalSource)) !== undefined;
  }

  #prefixes(clients: readonly string[]): PrefixMap<object> {
    const known = this.#byList.get(clients);
    if (known !== undefined) return known;
    const made = clients.reduce((map, cidr) => map.with(cidr, {}), PrefixMap.empty<object>());
    this.#byList.set(clients, made);
    return made;
  }
}
