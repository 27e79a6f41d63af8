export type * from "./backend.ts";
export { type ChangeCounts, ClusterState, type ClusterView, type DirtyServices } from "./cluster-state.ts";
export {
  type ConntrackFlow,
  frontendLookup,
  type GoneEndpoint,
  goneEndpoints,
  orphans,
  releasedFlows,
  type StaleFlowOptions,
  staleFlows,
} from "./conntrack.ts";
export { OWN_ANNOTATIONS, withoutOwnAnnotations } from "./decode/annotations.ts";
export { decodeEndpointSlice } from "./decode/endpoint-slice.ts";
export { createIntern, type Decoded, type Intern } from "./decode/fields.ts";
export { decodeNode, decodeServiceCIDR } from "./decode/node.ts";
export { decodeService, owningGateway } from "./decode/service.ts";
export type * from "./filter.ts";
export * from "./objects.ts";
export type * from "./plan.ts";
export { FRONTEND_KINDS, type FrontendLookup, type FrontendSpec, frontendSpecs } from "./planner/frontends.ts";
export { nodePortRanges, nodePortRangesProblem } from "./planner/gates.ts";
export { refusesShare, refusesWithoutLocal, selecting } from "./planner/group.ts";
export type { PlannerOptions } from "./planner/options.ts";
export { type PlannedOnce, type PlanOnceOptions, planOnce, planState } from "./planner/plan-once.ts";
export { Planner } from "./planner/planner.ts";
export { type NodePortChoice, nodePortChoice } from "./planner/service-plan.ts";
export type {
  MemoryUpdate,
  OwnershipChange,
  PlanCounts,
  PlanStep,
  ReleasedGroup,
  ServiceOwnership,
} from "./planner/step.ts";
export { type Effect, type ObjectKind, type Problem, quoted, serviceOfProblem, withoutHidden } from "./problem.ts";
export type { Selecting } from "./select/endpoint-sets.ts";
export { type EndpointFate, endpointFates, type Membership } from "./select/fates.ts";
export { type HintsOutcome, hintsOutcome } from "./select/hints.ts";
export { onlyLocal } from "./traffic-policy.ts";
