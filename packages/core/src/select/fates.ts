import { toEnd } from "@fairlead/base";
import type { EndpointSlice, SliceEndpoint } from "../objects.ts";
import { type Candidate, type CandidateQuery, candidates } from "./candidates.ts";
import { endpointSets, type Selecting } from "./endpoint-sets.ts";
import { type NodeTopology, topologyFilter } from "./topology.ts";
import { sliceWeights } from "./weights.ts";

/** Whether an endpoint is in a set, and why, in words that follow "it is". */
export interface Membership {
  /** Whether the endpoint is in the set. */
  readonly in: boolean;
  /** The reason, for people. */
  readonly why: string;
  /** Its share of the set's new connections, 0 to 1; absent: the endpoints of the set weigh alike. */
  readonly share?: number;
}

/** One endpoint of a service port as a slice has it, and what became of it. */
export interface EndpointFate {
  /** Canonical address. */
  readonly address: string;
  /** 1…65535. */
  readonly port: number;
  /** Name of the slice that it stands in. */
  readonly slice: string;
  /** The node that it runs on; absent where the slice does not say. */
  readonly nodeName?: string;
  /** As the slice has it. */
  readonly ready: boolean;
  /** As the slice has it. */
  readonly serving: boolean;
  /** As the slice has it. */
  readonly terminating: boolean;
  /** Whether it is in the cluster set. */
  readonly cluster: Membership;
  /** Whether it is in the local set. */
  readonly local: Membership;
}

/**
 * What the selection makes of every endpoint of a service port, and why: for people who ask. Members are decided by
 * `candidates` and `endpointSets` only; this only finds the words.
 *
 * @param slices in the byte order of their names
 */
export function endpointFates(
  slices: readonly EndpointSlice[],
  query: CandidateQuery,
  place: Selecting,
): EndpointFate[] {
  const all = toEnd(candidates(slices, query));
  const sets = toEnd(endpointSets(all, place));
  const weights = toEnd(sliceWeights(slices, query, all, place.weights));
  const members = (set: typeof sets.cluster): Selection["cluster"] => {
    const { endpoints = [], refused = 0 } = (weights && toEnd(weights.of(set))) ?? {};
    const total = endpoints.reduce((sum, weight) => sum + weight, refused);
    return new Map(set.map(({ address, port }, at) => [`${address} ${port}`, total && (endpoints[at] ?? 0) / total]));
  };
  const kept = all.filter(({ weightless }) => weightless !== true);
  const selection: Selection = { kept, place, cluster: members(sets.cluster), local: members(sets.local) };
  return slices.flatMap((slice) => fatesOfSlice(slice, query, selection));
}

interface Selection {
  readonly kept: readonly Candidate[];
  readonly place: Selecting;
  /** Shares of the members by `address port`; 0: all are alike. */
  readonly cluster: ReadonlyMap<string, number>;
  readonly local: ReadonlyMap<string, number>;
}

function fatesOfSlice(slice: EndpointSlice, query: CandidateQuery, selection: Selection): EndpointFate[] {
  if (slice.family !== query.family) return [];
  const ports = slice.ports.filter((port) => port.name === query.name && port.protocol === query.protocol);
  return ports.flatMap(({ port }) =>
    slice.endpoints.map((endpoint): EndpointFate => {
      const { address, nodeName, ready, serving, terminating } = endpoint;
      const base = { address, port, slice: slice.name, ready, serving, terminating };
      const both = dropped(endpoint, port, query, selection) ?? (slice.weight === 0 ? WEIGHTLESS : undefined);
      const key = `${address} ${port}`;
      const cluster = both ?? membership(selection.cluster.get(key), clusterWhy(endpoint, selection));
      const local = both ?? membership(selection.local.get(key), localWhy(endpoint, selection));
      return { ...base, ...(nodeName === undefined ? undefined : { nodeName }), cluster, local };
    }),
  );
}

const WEIGHTLESS: Membership = { in: false, why: "its EndpointSlice has weight 0" };

function membership(share: number | undefined, why: string): Membership {
  if (share === undefined || share === 0) return { in: share !== undefined, why };
  return { in: true, why: `${why}; ${Number((100 * share).toPrecision(3))} % of new connections`, share };
}

/** Left out before any selection. */
function dropped(
  endpoint: SliceEndpoint,
  port: number,
  { excludes }: CandidateQuery,
  { kept }: Selection,
): Membership | undefined {
  if (excludes?.(endpoint)) return { in: false, why: "in an excluded CIDR, which another network serves" };
  const winner = kept.find((one) => one.endpoint.address === endpoint.address && one.port === port);
  if (winner === undefined || winner.endpoint === endpoint) return undefined;
  return { in: false, why: "same address as another endpoint, which is preferred" };
}

function clusterWhy(endpoint: SliceEndpoint, { kept, place }: Selection): string {
  const all = kept.map((one) => one.endpoint);
  const ready = all.filter((one) => one.ready);
  const state = stateWhy(endpoint, ready.length > 0, place);
  if (!endpoint.ready) return state;
  const filter = topologyFilter(ready, place);
  return filter === undefined ? state : hintWhy(endpoint, place, filter(endpoint));
}

function localWhy(endpoint: SliceEndpoint, { kept, place }: Selection): string {
  const { nodeName } = endpoint;
  if (nodeName === undefined) return "on an unknown node";
  if (nodeName !== place.nodeName) return `on ${nodeName}`;
  return stateWhy(
    endpoint,
    kept.some((one) => one.endpoint.ready && one.endpoint.nodeName === nodeName),
    place,
  );
}

/** @param others whether any endpoint of those that are asked for is ready */
function stateWhy(
  { ready, serving, terminating }: SliceEndpoint,
  others: boolean,
  { standIns = true }: Selecting,
): string {
  if (ready) return "ready";
  if (!terminating) return "not ready";
  if (!serving) return "terminating, no longer serving";
  if (!standIns) return "terminating; this mode uses such endpoints of Services with load-balancer addresses only";
  return others ? "terminating; other endpoints are ready" : "terminating but still serving; no endpoint is ready";
}

function hintWhy({ nodeHints, zoneHints }: SliceEndpoint, place: NodeTopology, kept: boolean): string {
  const { nodeName, zone } = place;
  const hints = [
    ...(nodeHints === undefined || place.nodeHints === false ? [] : [`nodes ${nodeHints.join(", ")}`]),
    ...(zoneHints === undefined ? [] : [`zones ${zoneHints.join(", ")}`]),
  ];
  const here = zone === undefined ? nodeName : `${nodeName} in zone ${zone}`;
  return kept ? `ready, and hinted for this node (${here})` : `hinted for ${hints.join(" and ")}, not for ${here}`;
}
