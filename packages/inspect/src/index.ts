export { type Cluster, readCluster } from "./cluster.ts";
export { type DryRunOptions, dryRun } from "./dry-run/dry-run.ts";
export type { ProgramText } from "./dry-run/program-texts.ts";
export { MODES, type Mode } from "./modes.ts";
export { type NodePlanRequest, type PlannedNode, planNode } from "./node-plan.ts";
export { type FamilyPlanData, type PlanData, planData } from "./plan-data.ts";
