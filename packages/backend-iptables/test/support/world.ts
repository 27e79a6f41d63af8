import type { PlannerOptions } from "@fairlead/core";
import { type GoldenNode, goldenNode, goldenPlannerOptions } from "@fairlead/testkit";
import { World } from "@fairlead/testkit/histories";
import { iptablesSemantics } from "../../src/index.ts";

export function plannerOptions(node: GoldenNode, more: Partial<PlannerOptions> = {}): PlannerOptions {
  return goldenPlannerOptions(node, iptablesSemantics, more);
}

export function openWorld(more: Partial<PlannerOptions> = {}): World {
  return new World(plannerOptions(goldenNode(false), more));
}
