export { CONSENT_NAME, readConsent } from "@fairlead/networks";
export { componentOf, type NodeEvent, NodeEvents, type NodeEventsParts, serviceUID } from "./events.ts";
export { type FamilyConflicts, familyConflicts } from "./family-conflicts.ts";
export { type FilterSettings, filterSettings } from "./filter-settings.ts";
export { firstOfEach, LivePlan, type LivePlanParts } from "./live-plan.ts";
export { keepingMirrors, type MirroredSlice, MirroredSlices } from "./mirrored-slices.ts";
export { ClusterServices } from "./networks/cluster-services.ts";
export { LiveNetworks, type NetworksSetup } from "./networks/live-networks.ts";
export { type LearnedOnce, NetworksOnce, type NetworksOnceParts } from "./networks/networks-once.ts";
export { networksSettings, ruleAnnotations } from "./networks/settings.ts";
export { type NetworkSubscriptionsOptions, networkSubscriptions } from "./networks/subscriptions.ts";
export { nodeExclusions } from "./node-exclusion.ts";
export { NodeInputs, type NodeInputsParts } from "./node-inputs.ts";
export { type NodeIPs, nodeIPs, type PrimaryFamily, primaryFamily } from "./node-ips.ts";
export { nodePortAddressesFor, selectsIPv4Loopback } from "./node-port-addresses.ts";
export {
  type LearnedCIDR,
  learnedCIDRs,
  type OwnershipRow,
  ownershipReport,
  ownershipRow,
} from "./ownership-report.ts";
export {
  LEAVING_RULES,
  mirroredIn,
  type PodNetwork,
  type PodNetworkFacts,
  podNetworkOf,
  shownAnnotations,
} from "./pod-network.ts";
export { selectionOf } from "./selection.ts";
export { followServiceCIDRs } from "./service-cidrs.ts";
export { type IntakeOptions, type ProxySubscriptions, type Resource, subscriptions } from "./subscriptions.ts";
