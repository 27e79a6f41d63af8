import type { ModeSemantics } from "../backend.ts";
import { TURN } from "../data.ts";
import type { SliceEndpoint } from "../objects.ts";
import type { EndpointSetName, PlanEndpoint, ServicePortGroup } from "../plan.ts";
import type { Candidate } from "./candidates.ts";
import { type NodeTopology, topologyFilter } from "./topology.ts";

/** The endpoints of a service port by readiness and topology; each list in the order of the candidates. */
export interface EndpointSets {
  /** The ready ones that topology leaves; if there is none, those that serve while they terminate, anywhere. */
  readonly cluster: readonly PlanEndpoint[];
  /** The ready ones on this node; if there is none, those here that serve while they terminate. */
  readonly local: readonly PlanEndpoint[];
  /**
   * All that may be in the middle of a conversation: those that serve, and those that are ready although they do not
   * (publishNotReadyAddresses), since they get traffic.
   */
  readonly serving: readonly PlanEndpoint[];
  /** All on this node, ready or not. */
  readonly onNode: readonly PlanEndpoint[];
  /** All there are, ready or not. */
  readonly all: readonly PlanEndpoint[];
  /** Whether anything can be reached, from whatever node. */
  readonly any: boolean;
  /** Whether the members of each set are ready, and none stands in for them; empty sets are not. */
  readonly ready: Readonly<Record<EndpointSetName, boolean>>;
}

/** Where is planned for, and which endpoints may stand in there. */
export interface Selecting extends NodeTopology {
  /** False: those that serve while they terminate never stand in for ready ones. */
  readonly standIns?: boolean;
  /** Of the mode. */
  readonly weights?: ModeSemantics["weights"];
}

interface Usable {
  readonly source: SliceEndpoint;
  readonly weightless?: true | undefined;
  readonly planned: PlanEndpoint;
}

const NONE: readonly PlanEndpoint[] = [];

/**
 * Yields where there are many.
 *
 * @param before what was planned of the same service port; its endpoints that are equal are kept as they are
 */
export function* endpointSets(
  candidates: readonly Candidate[],
  place: Selecting,
  before?: Pick<ServicePortGroup, "serving" | "onNode">,
): Generator<void, EndpointSets> {
  const known = before && (yield* knownEndpoints(before));
  const all: Usable[] = [];
  for (const { endpoint, port, weightless } of candidates) {
    const { address } = endpoint;
    const local = endpoint.nodeName !== undefined && endpoint.nodeName === place.nodeName;
    const old = known?.get(address);
    const same = old !== undefined && old.port === port && old.local === local;
    all.push({ source: endpoint, weightless, planned: same ? old : { address, port, local } });
    if (all.length % TURN === 0) yield;
  }
  const usable = where(all, ({ source }) => source.ready || source.serving);
  const serving = plannedOf(usable);
  const weighing = where(usable, ({ weightless }) => weightless !== true);
  const cluster = pickCluster(weighing, place);
  if (all.length >= TURN) yield;
  const here = pickReady(
    weighing.filter((one) => one.planned.local),
    place,
  );
  const local = sameOrNew(plannedOf(here), serving);
  return {
    serving,
    cluster: cluster === usable ? serving : sameOrNew(plannedOf(cluster), serving),
    local,
    onNode: sameOrNew(plannedOf(all.filter((one) => one.planned.local)), local, serving),
    all: usable === all ? serving : plannedOf(all),
    any: cluster.length > 0,
    ready: { cluster: cluster[0]?.source.ready === true, local: here[0]?.source.ready === true },
  };
}

function* knownEndpoints({
  serving,
  onNode = NONE,
}: Pick<ServicePortGroup, "serving" | "onNode">): Generator<void, ReadonlyMap<string, PlanEndpoint>> {
  const known = new Map<string, PlanEndpoint>();
  for (const list of [serving, onNode]) {
    for (const one of list) if (known.set(one.address, one).size % TURN === 0) yield;
  }
  return known;
}

function pickCluster(usable: readonly Usable[], place: Selecting): readonly Usable[] {
  const picked = pickReady(usable, place);
  if (!picked[0]?.source.ready) return picked;
  const left = topologyFilter(
    picked.map((one) => one.source),
    place,
  );
  return left === undefined ? picked : picked.filter((one) => left(one.source));
}

/** The ready ones; if there is none, those that serve while they terminate (KEP-1669). */
function pickReady(usable: readonly Usable[], { standIns = true }: Selecting): readonly Usable[] {
  const ready = where(usable, (one) => one.source.ready);
  return ready.length > 0 || !standIns ? ready : usable.filter((one) => one.source.serving && one.source.terminating);
}

/** Mostly it is all of them, and then the same array. */
function where(list: readonly Usable[], wanted: (one: Usable) => boolean): readonly Usable[] {
  return list.every(wanted) ? list : list.filter(wanted);
}

function plannedOf(usable: readonly Usable[]): readonly PlanEndpoint[] {
  return usable.length === 0 ? NONE : usable.map((one) => one.planned);
}

/** Most lists of most services are the same one: it is kept once. The endpoints of both are the same objects. */
function sameOrNew(
  list: readonly PlanEndpoint[],
  ...known: readonly (readonly PlanEndpoint[])[]
): readonly PlanEndpoint[] {
  return known.find((other) => other.length === list.length && other.every((one, at) => one === list[at])) ?? list;
}
