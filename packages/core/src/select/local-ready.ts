import { TURN } from "../data.ts";
import type { OwnershipDecision } from "../filter.ts";
import type { EndpointSlice, IPFamily, SliceEndpoint } from "../objects.ts";
import { preference } from "./candidates.ts";

/**
 * How many distinct addresses of ready endpoints a service has on this node, whatever their ports: what its health
 * check answers (upstream: LocalReadyEndpoints). Those that weigh 0 do not count: a load balancer must not send
 * connections for them. Yields where there are many.
 */
export function* countLocalReady(
  slices: readonly EndpointSlice[],
  family: IPFamily,
  nodeName: string,
  excludes: OwnershipDecision["excludes"],
): Generator<void, number> {
  const byAddress = new Map<string, SliceEndpoint>();
  let seen = 0;
  for (const slice of slices) {
    if (slice.family !== family || slice.ports.length === 0 || slice.weight === 0) continue;
    if (seen >= TURN) yield;
    seen = (seen >= TURN ? 0 : seen) + slice.endpoints.length;
    for (const endpoint of slice.endpoints) {
      const known = byAddress.get(endpoint.address);
      if (known === undefined || preference(endpoint) > preference(known)) byAddress.set(endpoint.address, endpoint);
    }
  }
  const counts = (endpoint: SliceEndpoint) => endpoint.ready && endpoint.nodeName === nodeName && !excludes?.(endpoint);
  return [...byAddress.values()].filter(counts).length;
}
