import type { ForwardingPlan, GroupChange, PlanChange, ServicePortGroup } from "@fairlead/core";
import { type PlanContext, rendersGroupsAlike } from "./context.ts";

/**
 * The groups that stand for other kernel objects than before: those of the change, and where the node's addresses moved
 * also those that stand on such addresses or keep off them.
 */
export function* changedGroups(
  plan: ForwardingPlan,
  change: PlanChange,
  before: PlanContext,
  after: PlanContext,
): Generator<GroupChange> {
  yield* change.groups.values();
  if (rendersGroupsAlike(before, after)) return;
  for (const [id, group] of plan.groups) {
    if (!change.groups.has(id) && isReachedFromOutside(group)) yield { before: group, after: group };
  }
}

function isReachedFromOutside({ frontends }: ServicePortGroup): boolean {
  return frontends.some(({ reach }) => reach === "external");
}
