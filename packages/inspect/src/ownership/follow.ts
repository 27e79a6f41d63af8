import { IP_FAMILIES, systemClock, toEnd } from "@fairlead/base";
import { ClusterState, type ServiceKey } from "@fairlead/core";
import type { Memory } from "@fairlead/endpoint-filter";
import {
  keepingMirrors,
  type LearnedOnce,
  LiveNetworks,
  learnedCIDRs,
  MirroredSlices,
  type NetworksOnceParts,
  type OwnershipRow,
  ownershipReport,
  ownershipRow,
  shownAnnotations,
  subscriptions,
} from "@fairlead/intake";
import type { ObjectSource } from "@fairlead/watch";
import { type NodePlanRequest, planNode } from "../node-plan.ts";

export interface OwnershipListener {
  /** All services, once they are known. */
  readonly onAll: (rows: readonly OwnershipRow[]) => void;
  /** A service whose row has changed, or that is new. */
  readonly onChange: (row: OwnershipRow) => void;
  /** A service that is gone in that family. */
  readonly onGone: (row: OwnershipRow) => void;
}

type NetworksDecision = LearnedOnce["decision"];
type NetworksSettings = NetworksOnceParts["settings"];

type Request = Omit<NodePlanRequest, "cluster" | "services" | "memory"> & {
  readonly memory: Memory;
  /** What the agent learns of networks. Default: nothing. */
  readonly networks?: NetworksSettings | undefined;
};

/**
 * Follows who owns the services of a source until the signal aborts; remembers owners, and learns networks, as the
 * agent does.
 */
export async function followOwnership(
  source: ObjectSource,
  request: Request,
  listener: OwnershipListener,
  signal: AbortSignal,
): Promise<void> {
  const [state, mirrored] = [new ClusterState(), new MirroredSlices()];
  const { networks: settings } = request;
  const live = settings && liveNetworks(settings, state);
  const missing = new Set(["services", "endpointSlices", ...(live ? ["networks"] : [])]);
  let decision: NetworksDecision | undefined;
  let following: Following | undefined;
  const synced = (what: string) => {
    missing.delete(what);
    if (missing.size === 0) following ??= new Following({ state, mirrored, request, listener, live }, decision);
  };
  const { services, endpointSlices, serviceCIDRs } = subscriptions({
    state,
    annotations: shownAnnotations(request.config),
    problems: { object: () => {} },
    onNode: () => {},
    onChange: () => following?.take(),
    onSynced: (resource) => {
      live?.synced(resource);
      synced(resource);
    },
    ...(live && { onServiceCIDRs: (cidrs) => live.setServiceCIDRs(cidrs) }),
  });
  live?.start({
    onFirst: () => synced("networks"),
    onChange: (next) => {
      decision = next;
      following?.decided(next);
    },
  });
  const others = live && { others: live.subscriptions, ...(serviceCIDRs && { serviceCIDRs }) };
  const slices = keepingMirrors(endpointSlices, mirrored, (service) => following?.mirrored(service));
  await source.run({ services, endpointSlices: slices, ...others }, signal).finally(() => live?.stop());
}

function liveNetworks(settings: NetworksSettings, state: ClusterState): LiveNetworks {
  return new LiveNetworks({
    setup: { settings },
    state,
    clock: systemClock,
    onProblem: () => {},
    onDecided: () => {},
    keep: () => {},
  });
}

interface FollowingParts {
  readonly state: ClusterState;
  readonly mirrored: MirroredSlices;
  readonly request: Request;
  readonly listener: OwnershipListener;
  readonly live: LiveNetworks | undefined;
}

class Following {
  readonly #parts: FollowingParts;
  readonly #planned;
  #learned: ReturnType<typeof learnedCIDRs>;
  #memory: Memory;
  readonly #rows = new Map<string, OwnershipRow>();

  constructor(parts: FollowingParts, decision: NetworksDecision | undefined) {
    const { state, mirrored, request, listener, live } = parts;
    this.#parts = parts;
    const report = live?.report();
    const learned = decision && report && { learned: { decision, report, problems: [] } };
    this.#planned = planNode({ ...request, cluster: { state, mirrored, problems: [], ...learned } });
    this.#learned = learnedCIDRs(report?.cidrs ?? []);
    live?.takeConcerned();
    this.#see(state.takeDirty().services);
    this.#memory = request.memory.apply(this.#planned.remembered);
    const { services } = ownershipReport(this.#planned.planner.ownerships(), report, this.#planned.pods);
    for (const row of services) this.#rows.set(idOf(row.service, row.ipFamily), row);
    listener.onAll(services);
  }

  /** Services or endpoints changed. */
  take(): void {
    this.#parts.live?.syncBegins();
    const { services } = this.#parts.state.takeDirty();
    this.#plan(services);
    this.#see(services);
  }

  /** A slice that is mirrored for a service came, changed or went. */
  mirrored(service: ServiceKey): void {
    this.#report(service);
  }

  /** Other CIDRs or rules decide. */
  decided({ filter }: NetworksDecision): void {
    const { planner, options } = this.#planned;
    const { live } = this.#parts;
    this.#learned = learnedCIDRs(live?.report().cidrs ?? []);
    const concerned = live?.takeConcerned() ?? new Set();
    planner.setOptions({ ...options, filter }, concerned);
    this.#plan(concerned);
  }

  #plan(services: ReadonlySet<ServiceKey>): void {
    const step = toEnd(this.#planned.planner.replan(this.#parts.state, services, this.#memory));
    this.#memory = this.#memory.apply(step.memory);
    for (const service of services) this.#report(service);
  }

  /** A decision that was made meanwhile has not seen these where they are now. */
  #see(services: ReadonlySet<ServiceKey>): void {
    const { live } = this.#parts;
    if (live === undefined) return;
    void live.see(services).then(() => {
      const concerned = live.takeConcerned();
      if (concerned.size > 0) this.#plan(concerned);
    });
  }

  #report(service: ServiceKey): void {
    const { listener } = this.#parts;
    for (const family of IP_FAMILIES) {
      const id = idOf(service, family);
      const before = this.#rows.get(id);
      const decision = this.#planned.planner.ownership(service, family);
      const row = decision && ownershipRow({ service, family, decision }, this.#learned, this.#planned.pods);
      if (row === undefined) {
        if (this.#rows.delete(id) && before !== undefined) listener.onGone(before);
      } else if (JSON.stringify(row) !== JSON.stringify(before)) {
        this.#rows.set(id, row);
        listener.onChange(row);
      }
    }
  }
}

function idOf(service: string, family: string): string {
  return `${family} ${service}`;
}
