import type { OwnershipDecision, OwnershipMemory } from "../filter.ts";
import type { IPFamily, ServiceKey } from "../objects.ts";
import type { ForwardingPlan } from "../plan.ts";
import type { ClusterView } from "../state/view.ts";
import type { FrontendLookup } from "./lookup.ts";
import type { PlannerOptions } from "./options.ts";
import type { PlanCounts, PlanStep, ServiceOwnership } from "./step.ts";

/** The shape of `Planner`, for those who only use one. */
export interface ServicePlanner {
  /** Returns what the next `replan` takes besides its dirty services: it knows by itself, this is for the log. */
  setOptions(options: PlannerOptions): "nothing" | "node" | "all";
  /** The live plan of a family; empty for a family that is not planned. */
  plan(family: IPFamily): ForwardingPlan;
  /**
   * Plans the dirty services again; yields after each of them, so that the caller can do other things between. The live
   * plans are in between two states until it has run to its end, which it has to.
   */
  replan(
    state: ClusterView,
    dirty: Iterable<ServiceKey> | "all",
    memory: OwnershipMemory,
  ): Generator<void, PlanStep, void>;
  /** Finds the group behind a frontend, for conntrack. */
  lookup(family: IPFamily): FrontendLookup;
  counts(family: IPFamily): PlanCounts;
  ownership(service: ServiceKey, family: IPFamily): OwnershipDecision | undefined;
  ownerships(): Iterable<ServiceOwnership>;
}
