import type { SliceEndpoint } from "../objects.ts";

/** Where this proxy runs. */
export interface NodeTopology {
  /** As `spec.nodeName` of pods and `nodeName` of endpoints have it. */
  readonly nodeName: string;
  /** The Node's label `topology.kubernetes.io/zone`. */
  readonly zone?: string | undefined;
  /** False: hints for nodes do not count. */
  readonly nodeHints?: boolean | undefined;
  /** No hint counts. */
  readonly ignoresHints?: true;
}

/**
 * Which ready endpoints topology leaves (KEP-2433, KEP-4444): node hints, then zone hints, count only if every ready
 * endpoint has them and at least one of them names this place; otherwise all are left.
 *
 * @param ready every ready endpoint of the service port
 */
export function topologyFilter(
  ready: readonly SliceEndpoint[],
  place: NodeTopology,
): ((endpoint: SliceEndpoint) => boolean) | undefined {
  if (place.ignoresHints) return undefined;
  const hintedForNode = (endpoint: SliceEndpoint) => endpoint.nodeHints?.includes(place.nodeName) ?? false;
  const allHinted = place.nodeHints !== false && ready.every((endpoint) => endpoint.nodeHints !== undefined);
  if (allHinted && ready.some(hintedForNode)) return hintedForNode;
  const { zone } = place;
  if (zone === undefined) return undefined;
  const hintedForZone = (endpoint: SliceEndpoint) => endpoint.zoneHints?.includes(zone) ?? false;
  if (ready.every((endpoint) => endpoint.zoneHints !== undefined) && ready.some(hintedForZone)) return hintedForZone;
  return undefined;
}
