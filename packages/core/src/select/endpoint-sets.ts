import type { SliceEndpoint } from "../objects.ts";
import type { PlanEndpoint } from "../plan.ts";
import type { Candidate } from "./candidates.ts";
import { type Place, topologyFilter } from "./topology.ts";

/** The endpoints of a service port by what they are good for; each list in the order of the candidates. */
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
  /** Whether anything can be reached, from whatever node. */
  readonly any: boolean;
}

interface Usable {
  readonly source: SliceEndpoint;
  readonly planned: PlanEndpoint;
}

const NONE: readonly PlanEndpoint[] = [];

export function endpointSets(candidates: readonly Candidate[], place: Place): EndpointSets {
  const usable = candidates.flatMap(({ endpoint, port }): Usable[] => {
    if (!endpoint.ready && !endpoint.serving) return [];
    const local = endpoint.nodeName !== undefined && endpoint.nodeName === place.nodeName;
    return [{ source: endpoint, planned: { address: endpoint.address, port, local } }];
  });
  const serving = plannedOf(usable);
  const cluster = pickCluster(usable, place);
  const local = pickReady(usable.filter((one) => one.planned.local));
  return {
    serving,
    cluster: oneArray(plannedOf(cluster), serving),
    local: oneArray(plannedOf(local), serving),
    any: cluster.length > 0,
  };
}

function pickCluster(usable: readonly Usable[], place: Place): readonly Usable[] {
  const picked = pickReady(usable);
  if (!picked[0]?.source.ready) return picked;
  const left = topologyFilter(
    picked.map((one) => one.source),
    place,
  );
  return left === undefined ? picked : picked.filter((one) => left(one.source));
}

/** The ready ones; if there is none, those that serve while they terminate (KEP-1669). */
function pickReady(usable: readonly Usable[]): readonly Usable[] {
  const ready = usable.filter((one) => one.source.ready);
  return ready.length > 0 ? ready : usable.filter((one) => one.source.serving && one.source.terminating);
}

function plannedOf(usable: readonly Usable[]): readonly PlanEndpoint[] {
  return usable.length === 0 ? NONE : usable.map((one) => one.planned);
}

/** Most lists of most services are the same one: it is kept once. Both are sublists of the same candidates. */
function oneArray(list: readonly PlanEndpoint[], serving: readonly PlanEndpoint[]): readonly PlanEndpoint[] {
  return list.length === serving.length ? serving : list;
}
