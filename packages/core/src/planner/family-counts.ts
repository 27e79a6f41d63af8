import type { Ownership, OwnershipDecision } from "../filter.ts";
import type { ServiceRecord } from "./service-plan.ts";
import type { PlanCounts } from "./step.ts";

/** Gauges of a family, kept up by what each service adds to them. */
export class FamilyCounts implements PlanCounts {
  readonly services: Record<Ownership, number> = { ours: 0, foreign: 0, mixed: 0 };
  readonly noLocalEndpoints = { internal: 0, external: 0 };
  endpointsExcluded = 0;

  replace(before: ServiceRecord | undefined, after: ServiceRecord | undefined): void {
    if (before !== undefined) this.#add(before, -1);
    if (after !== undefined) this.#add(after, 1);
  }

  #add(record: ServiceRecord, sign: 1 | -1): void {
    this.services[record.decision.ownership] += sign;
    this.endpointsExcluded += sign * leftOut(record.decision);
    this.noLocalEndpoints.internal += sign * record.noLocalInternal;
    this.noLocalEndpoints.external += sign * record.noLocalExternal;
  }
}

/** Excluded endpoints that really get nothing from us: a decision for all of them leaves none out. */
function leftOut(decision: OwnershipDecision): number {
  return decision.frontends === "none" || decision.excludes !== undefined ? decision.excludedEndpoints : 0;
}
