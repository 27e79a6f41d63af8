import type { PlanEndpoint } from "@fairlead/core";
import type { Hex } from "@fairlead/netfilter/nft";
import { endpointValue } from "../keys.ts";
import type { Memory } from "../memory.ts";
import type { Placement } from "../placement.ts";
import { endpointName } from "../slots.ts";

/** A client that was remembered, with an endpoint that it may still have. */
export interface Known {
  /** Its address. */
  readonly client: Hex;
  readonly memory: Memory;
  /** The endpoint's number in that memory. */
  readonly endpoint: number;
  readonly affinitySeconds: number;
  /** How long it is remembered yet, milliseconds. */
  readonly expires: number;
}

/** A service port with affinity, as clients of before find it. */
export interface Sticky extends Pick<Known, "memory" | "affinitySeconds"> {
  readonly placement: Placement;
}

/** What remembers clients; a step for each. */
export function* stickyOf(placements: Iterable<Placement>): Generator<Sticky> {
  for (const placement of placements) {
    const { memory, group } = placement;
    if (memory === undefined || group.affinitySeconds === undefined) continue;
    yield { placement, memory, affinitySeconds: group.affinitySeconds };
  }
}

/** Its endpoints, of both sets, each once. */
export function* endpointsOf({
  placement: { cluster, local },
  memory,
}: Sticky): Generator<readonly [endpoint: PlanEndpoint, number: number]> {
  const seen = new Set<number>();
  for (const endpoint of [...(cluster?.slots ?? []), ...(local?.slots ?? [])]) {
    const number = memory.endpoints.get(endpointName(endpoint));
    if (number === undefined || seen.has(number)) continue;
    seen.add(number);
    yield [endpoint, number];
  }
}

/** The same, as sets have endpoints. */
export function numbersByValue(sticky: Sticky): ReadonlyMap<Hex, number> {
  return new Map(Array.from(endpointsOf(sticky), ([endpoint, number]) => [endpointValue(endpoint), number]));
}
