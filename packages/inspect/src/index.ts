export { instanceOfTable } from "@fairlead/backend-nftables";
export { leaveOutOthers } from "./about/leave-out.ts";
export { type Cluster, type ReadOptions, readCluster } from "./cluster.ts";
export {
  DIFFERENCE_KINDS,
  type Difference,
  type DifferenceKind,
  type DifferenceTarget,
} from "./compare/follow/difference.ts";
export {
  type DifferenceEvent,
  DifferenceTracker,
  type TrackedDifference,
} from "./compare/follow/difference-tracker.ts";
export { groupDifferences } from "./compare/follow/group-differences.ts";
export { ownRules } from "./compare/follow/own-rules.ts";
export { Rounds } from "./compare/follow/rounds.ts";
export { straysIn } from "./compare/follow/strays.ts";
export { compareIpvs, type IpvsCompareOptions, type IpvsObjects } from "./compare/ipvs/compare.ts";
export { addressesOf, serversOf, setsOf } from "./compare/ipvs/text.ts";
export { compareNftables, servicesInTable } from "./compare/nftables/compare.ts";
export { isKubeProxyTable } from "./compare/nftables/kube-proxy.ts";
export { type Agreement, agreementOf, type PacketFinding } from "./compare/packets/agreement.ts";
export { compareProbes } from "./compare/packets/probed.ts";
export { endpointProbesOf, type Probe, probesOf } from "./compare/packets/probes.ts";
export { addressIn, OUTER_INTERFACE, outsideAddress, type Source } from "./compare/packets/sources.ts";
export { type KernelState, type View, viewOf } from "./compare/packets/view.ts";
export { type OutcomeShares, UNTOUCHED, waysText } from "./compare/packets/ways.ts";
export { byService, type Finding, type ServiceReport } from "./compare/rules/finding.ts";
export { restored } from "./compare/rules/restored.ts";
export { compareRules, hasForeignRules, renamedServices, servicesIn } from "./compare/rules/rules.ts";
export { type BlockedPackets, type BlockedRequest, blockedPackets } from "./compare/states/blocked.ts";
export { type Destination, destinationText } from "./compare/states/destination.ts";
export {
  compareTraffic,
  type PlannedSide,
  type TrafficChange,
  type TrafficDifference,
  type TrafficOutcome,
} from "./compare/states/traffic.ts";
export { isProxyChain, type Reader, readersOf, withoutProxy } from "./compare/states/without-proxy.ts";
export { ADVICE_NAMES, type AdviceName } from "./doctor/advice.ts";
export {
  CALLING_RESOURCES,
  type CalledServices,
  type CallingResource,
  calledServices,
} from "./doctor/called-services.ts";
export { diagnose } from "./doctor/diagnose.ts";
export type * from "./doctor/facts.ts";
export type { ProgramText } from "./dry-run/program-texts.ts";
export { type DryRunOptions, dryRun, dryTables } from "./dry-run.ts";
export { explainService } from "./explain/explain.ts";
export type * from "./explain/explanation.ts";
export { fastPathOnNode } from "./explain/fast-path.ts";
export { type FoundTarget, findTarget } from "./explain/find.ts";
export { parseTarget, type Target } from "./explain/target.ts";
export { type AttributeFlow, flowAttribution } from "./flows/attribute.ts";
export type * from "./flows/flow.ts";
export { type Relays, readRelays } from "./flows/relays.ts";
export type * from "./flows/tracked.ts";
export { type EndpointTraffic, type ServiceTraffic, trafficByService } from "./flows/traffic.ts";
export { missingNodeDoubts } from "./missing-node.ts";
export type { ModeFinding } from "./mode-change/finding.ts";
export { modeChange } from "./mode-change/mode-change.ts";
export type { ModeChange, ModeSide, SeenNode } from "./mode-change/sides.ts";
export { factsOf, MODES, type Mode } from "./modes/index.ts";
export { type NodePlanRequest, nodeOptions, type PlannedNode, planNode, planNodeSteps, podFacts } from "./node-plan.ts";
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
  tablesOf,
  UnreadState,
} from "./node-view.ts";
export { type AgentPages, agentStatus } from "./nodes/agent-status.ts";
export { readNodes } from "./nodes/read-nodes.ts";
export { type NamedService, whyIgnored } from "./nodes/read-service.ts";
export type * from "./nodes/status.ts";
export { followOwnership, type OwnershipListener } from "./ownership/follow.ts";
export { type SuggestedCIDR, type SuggestFacts, suggestCIDRs } from "./ownership/suggest.ts";
export { type FamilyPlanData, type PlanData, planData } from "./plan-data.ts";
export { relatedServices } from "./related.ts";
