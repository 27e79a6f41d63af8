import type { PlannerOptions } from "@fairlead/core";
import { type GoldenNode, goldenNode, goldenPlannerOptions } from "@fairlead/testkit";
import { World } from "@fairlead/testkit/histories";
import { ipvsSemantics } from "../../src/index.ts";

export function plannerOptions(node: GoldenNode, more: Partial<PlannerOptions> = {}): PlannerOptions {
  return goldenPlannerOptions(node, ipvsSemantics, more);
}

/** The options of a node with some addresses of its own. */
export function worldOptions(nodeAddresses: readonly string[] = ["10.201.0.10", "127.0.0.1"]): PlannerOptions {
  return plannerOptions(goldenNode(false), { nodeAddresses: { IPv4: nodeAddresses } });
}

export function openWorld(more: Partial<PlannerOptions> = {}): World {
  return new World({ ...worldOptions(), ...more });
}
