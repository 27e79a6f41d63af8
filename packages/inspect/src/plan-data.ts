import { IP_FAMILIES } from "@fairlead/base";
import type { ForwardingPlan } from "@fairlead/core";
import type { Mode } from "./modes/index.ts";
import type { PlannedNode } from "./node-plan.ts";

/** A forwarding plan as JSON: maps and sets are arrays, groups stand in the order of their ids. */
export function planData({ mode, nodeName, planner }: PlanReader): PlanData {
  return { mode, node: nodeName, families: IP_FAMILIES.map((family) => familyData(planner.plan(family))) };
}

/** As much of a `PlannedNode` as its data needs. */
export interface PlanReader extends Pick<PlannedNode, "mode" | "nodeName"> {
  readonly planner: Pick<PlannedNode["planner"], "plan">;
}

export interface PlanData {
  readonly mode: Mode;
  readonly node: string;
  readonly families: readonly FamilyPlanData[];
}

export type FamilyPlanData = Omit<ForwardingPlan, "groups" | "healthChecks" | "foreignClusterIPs"> & {
  readonly groups: readonly (ForwardingPlan["groups"] extends ReadonlyMap<string, infer G> ? G : never)[];
  readonly healthChecks: readonly (ForwardingPlan["healthChecks"] extends ReadonlyMap<string, infer H> ? H : never)[];
  readonly foreignClusterIPs: readonly string[];
};

function familyData({ family, groups, node, healthChecks, foreignClusterIPs, endpointCount }: ForwardingPlan) {
  return {
    family,
    groups: [...groups.values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
    node,
    healthChecks: [...healthChecks.values()].sort((a, b) => (a.service < b.service ? -1 : 1)),
    foreignClusterIPs: [...foreignClusterIPs].sort(),
    endpointCount,
  };
}
