export { CONSENT_NAME, readConsent } from "@fairlead/networks";
export { componentOf, type NodeEvent, NodeEvents, type NodeEventsParts, serviceUID } from "./events.ts";
export { type FamilyConflicts, familyConflicts } from "./family-conflicts.ts";
export { firstOfEach, LivePlan, type LivePlanParts } from "./live-plan.ts";
export { type NetworkSubscriptionsOptions, networkSubscriptions } from "./network-subscriptions.ts";
export {
  ClusterServices,
  type LearnedOnce,
  LiveNetworks,
  NetworksOnce,
  type NetworksOnceParts,
  type NetworksSetup,
} from "./networks.ts";
export {
  followServiceCIDRs,
  NodeInputs,
  type NodeInputsParts,
  type NodeIPs,
  nodeExclusions,
  nodeIPs,
  nodePortAddressesFor,
  type PrimaryFamily,
  primaryFamily,
  selectsIPv4Loopback,
} from "./node-inputs.ts";
export { type OtherNodesOptions, withOtherNodes } from "./other-nodes.ts";
export {
  type LearnedCIDR,
  learnedCIDRs,
  type OwnershipRow,
  ownershipReport,
  ownershipRow,
} from "./ownership-report.ts";
export {
  keepingMirrors,
  LEAVING_RULES,
  type MirroredSlice,
  MirroredSlices,
  mirroredIn,
  type PodNetwork,
  type PodNetworkFacts,
  podNetworkOf,
  shownAnnotations,
} from "./pod-network.ts";
export { type FilterSettings, filterSettings, networksSettings, ruleAnnotations } from "./settings.ts";
export {
  type IntakeOptions,
  type ProxySubscriptions,
  type Resource,
  selectionOf,
  subscriptions,
} from "./subscriptions.ts";
