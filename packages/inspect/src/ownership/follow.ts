import { IP_FAMILIES, toEnd } from "@fairlead/base";
import { ClusterState, type ServiceKey } from "@fairlead/core";
import type { Memory } from "@fairlead/endpoint-filter";
import { type OwnershipRow, ownershipReport, ownershipRow, type Resource, subscriptions } from "@fairlead/intake";
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

type Request = Omit<NodePlanRequest, "cluster" | "services" | "memory"> & { readonly memory: Memory };

/** Follows who owns the services of a source until the signal aborts; remembers owners as the agent does. */
export async function followOwnership(
  source: ObjectSource,
  request: Request,
  listener: OwnershipListener,
  signal: AbortSignal,
): Promise<void> {
  const state = new ClusterState();
  const missing = new Set<Resource>(["services", "endpointSlices"]);
  let following: Following | undefined;
  const { services, endpointSlices } = subscriptions({
    state,
    problems: { object: () => {} },
    onNode: () => {},
    onChange: () => following?.take(),
    onSynced: (resource) => {
      missing.delete(resource);
      if (missing.size === 0) following ??= new Following(state, request, listener);
    },
  });
  await source.run({ services, endpointSlices }, signal);
}

class Following {
  readonly #state: ClusterState;
  readonly #listener: OwnershipListener;
  readonly #planner;
  #memory: Memory;
  readonly #rows = new Map<string, OwnershipRow>();

  constructor(state: ClusterState, request: Request, listener: OwnershipListener) {
    this.#state = state;
    this.#listener = listener;
    const { planner, remembered } = planNode({ ...request, cluster: { state, problems: [] } });
    state.takeDirty();
    this.#planner = planner;
    this.#memory = request.memory.apply(remembered);
    const { services } = ownershipReport(planner.ownerships());
    for (const row of services) this.#rows.set(idOf(row.service, row.ipFamily), row);
    listener.onAll(services);
  }

  take(): void {
    const { services } = this.#state.takeDirty();
    const step = toEnd(this.#planner.replan(this.#state, services, this.#memory));
    this.#memory = this.#memory.apply(step.memory);
    for (const service of services) this.#report(service);
  }

  #report(service: ServiceKey): void {
    for (const family of IP_FAMILIES) {
      const id = idOf(service, family);
      const before = this.#rows.get(id);
      const decision = this.#planner.ownership(service, family);
      const row = decision && ownershipRow({ service, family, decision });
      if (row === undefined) {
        if (this.#rows.delete(id) && before !== undefined) this.#listener.onGone(before);
      } else if (JSON.stringify(row) !== JSON.stringify(before)) {
        this.#rows.set(id, row);
        this.#listener.onChange(row);
      }
    }
  }
}

function idOf(service: string, family: string): string {
  return `${family} ${service}`;
}
