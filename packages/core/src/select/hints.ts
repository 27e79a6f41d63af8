import { toEnd } from "@fairlead/base";
import type { EndpointSlice, SliceEndpoint } from "../objects.ts";
import { type CandidateQuery, candidates } from "./candidates.ts";
import type { NodeTopology } from "./topology.ts";

/** Which hints of a service port's endpoints count here, and why the others do not. */
export interface HintsOutcome {
  /**
   * `node`: hints for nodes choose endpoints. `zone`: those for zones do. `none`: endpoints are chosen without hints.
   */
  readonly counts: "node" | "zone" | "none";
  /** Why hints for nodes do not count; absent: they do. */
  readonly noNode?: string;
  /** Why hints for zones do not count, as far as that was asked; absent: they do. */
  readonly noZone?: string;
}

/**
 * What `topologyFilter` makes of the endpoints of a service port, in words: for people who ask why traffic leaves the
 * zone (upstream: pkg/proxy/topology.go logs some of it).
 *
 * @param slices in the byte order of their names
 */
export function hintsOutcome(
  slices: readonly EndpointSlice[],
  query: CandidateQuery,
  place: NodeTopology,
): HintsOutcome {
  const all = toEnd(candidates(slices, query)).flatMap((one) => (one.weightless ? [] : one.endpoint));
  const ready = all.filter((endpoint) => endpoint.ready);
  const noNode = whyNoNodeHints(ready, place);
  if (noNode === undefined) return { counts: "node" };
  const noZone = whyNoZoneHints(ready, place);
  if (noZone === undefined) return { counts: "zone", noNode };
  return { counts: "none", noNode, noZone };
}

function whyNoNodeHints(ready: readonly SliceEndpoint[], place: NodeTopology): string | undefined {
  if (place.ignoresHints) return IGNORED;
  if (place.nodeHints === false) return "the feature gate PreferSameTrafficDistribution is off";
  return whyNoHints(ready, ({ nodeHints }) => nodeHints, place.nodeName, "node");
}

const IGNORED = "this mode does not use hints";

function whyNoZoneHints(ready: readonly SliceEndpoint[], { zone, ignoresHints }: NodeTopology): string | undefined {
  if (ignoresHints) return IGNORED;
  if (zone === undefined) return "the node has no zone (label topology.kubernetes.io/zone)";
  return whyNoHints(ready, ({ zoneHints }) => zoneHints, zone, "zone");
}

function whyNoHints(
  ready: readonly SliceEndpoint[],
  hintsOf: (endpoint: SliceEndpoint) => readonly string[] | undefined,
  here: string,
  kind: "node" | "zone",
): string | undefined {
  if (ready.length === 0) return "no endpoint is ready";
  const without = ready.filter((endpoint) => hintsOf(endpoint) === undefined).length;
  if (without > 0) return `${without} of ${ready.length} ready endpoints have no hint for a ${kind}`;
  return ready.some((endpoint) => hintsOf(endpoint)?.includes(here)) ? undefined : `no hint is for ${kind} ${here}`;
}
