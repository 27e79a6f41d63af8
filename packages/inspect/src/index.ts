export { instanceOfTable } from "@fairlead/backend-nftables";
export { type Cluster, type ReadObjects, type ReadOptions, readCluster, readObjects } from "./cluster.ts";
export { type Agreement, agreementOf, type PacketFinding, trafficFindings } from "./compare/agreement.ts";
export {
  type DifferenceEvent,
  DifferenceTracker,
  Rounds,
  type TrackedDifference,
} from "./compare/difference-tracker.ts";
export {
  DIFFERENCE_KINDS,
  type Difference,
  type DifferenceKind,
  type DifferenceTarget,
  groupDifferences,
} from "./compare/group-differences.ts";
export {
  addressesOf,
  compareIpvs,
  type IpvsCompareOptions,
  type IpvsObjects,
  serversOf,
  setsOf,
} from "./compare/ipvs.ts";
export { compareNftables, isKubeProxyTable, servicesInTable } from "./compare/nftables.ts";
export {
  addressIn,
  OUTER_INTERFACE,
  outsideAddress,
  type Probe,
  type Source,
} from "./compare/probes.ts";
export { restored } from "./compare/restored.ts";
export {
  byService,
  compareRules,
  type Finding,
  hasForeignRules,
  renamedServices,
  type ServiceReport,
  servicesIn,
} from "./compare/rules.ts";
export { type Destination, destinationText } from "./compare/states/destinations.ts";
export {
  type BlockedPackets,
  type BlockedRequest,
  blockedPackets,
  compareTraffic,
  type PlannedSide,
  type TrafficChange,
  type TrafficDifference,
  type TrafficOutcome,
} from "./compare/states/traffic.ts";
export { isProxyChain, ownRules, type Reader, readersOf, withoutProxy } from "./compare/states/without-proxy.ts";
export { straysIn } from "./compare/strays.ts";
export { type KernelState, type OutcomeShares, type View, viewOf, waysText } from "./compare/ways.ts";
export {
  CALLING_RESOURCES,
  type CalledServices,
  type CallingResource,
  calledServices,
} from "./doctor/called-services.ts";
export { ADVICE_NAMES, type AdviceName, type Diagnosis, diagnose } from "./doctor/diagnose.ts";
export type * from "./doctor/facts.ts";
export { type DryRunOptions, dryRun, dryTables } from "./dry-run.ts";
export { explainService, fastPathOnNode } from "./explain.ts";
export type * from "./explanation.ts";
export { type FoundTarget, findTarget, parseTarget, type Target } from "./find.ts";
export type * from "./flow.ts";
export { type AttributeFlow, flowAttribution } from "./flow-attribution.ts";
export {
  type EndpointTraffic,
  type Relays,
  readRelays,
  type ServiceTraffic,
  trafficByService,
} from "./flow-traffic.ts";
export { missingNodeDoubts } from "./missing-node.ts";
export { type ModeChange, type ModeFinding, type ModeSide, modeChange, type SeenNode } from "./mode-change.ts";
export type { ProgramText } from "./modes/empty-node.ts";
export { factsOf, MODES, type Mode, unservedIn, whyUnread, whyUnwritten } from "./modes/index.ts";
export {
  asRead,
  type NodePlanRequest,
  nodeOptions,
  type PlannedNode,
  planNode,
  planNodeSteps,
  podFacts,
} from "./node-plan.ts";
export {
  isStatePart,
  type NodeState,
  nodeStateText,
  parseNodeState,
  type RuleListing,
  STATE_PARTS,
  type StatePart,
  type StateParts,
  type StateRoute,
} from "./node-state.ts";
export {
  addressEnvironment,
  hostEnvironment,
  ipvsEnvironment,
  ipvsObjectsOf,
  isTcpLiberal,
  kernelStateOf,
  liveEnvironment,
  partOf,
  routeCIDR,
  routesOf,
  rulesOf,
  savedRules,
  tablesOf,
  UnreadState,
} from "./node-view.ts";
export type * from "./nodes.ts";
export { type AgentPages, agentStatus, type NamedService, readNodes, refusedObjects, whyIgnored } from "./nodes.ts";
export {
  followOwnership,
  type OwnershipListener,
  type SuggestedCIDR,
  type SuggestFacts,
  suggestCIDRs,
} from "./ownership.ts";
export { type FamilyPlanData, type PlanData, planData } from "./plan-data.ts";
export { relatedServices } from "./related.ts";
