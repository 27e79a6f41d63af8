export { DIFFERENCE_KINDS, type Difference, type DifferenceKind, type DifferenceTarget } from "./follow/difference.ts";
export { type DifferenceEvent, DifferenceTracker, type TrackedDifference } from "./follow/difference-tracker.ts";
export { groupDifferences } from "./follow/group-differences.ts";
export { ownRules } from "./follow/own-rules.ts";
export { Rounds } from "./follow/rounds.ts";
export { straysIn } from "./follow/strays.ts";
export { compareIpvs, type IpvsCompareOptions, type IpvsObjects } from "./ipvs/compare.ts";
export { addressesOf, serversOf, setsOf } from "./ipvs/text.ts";
export { compareNftables, servicesInTable } from "./nftables/compare.ts";
export { isKubeProxyTable } from "./nftables/kube-proxy.ts";
export { type Agreement, agreementOf, type PacketFinding } from "./packets/agreement.ts";
export { compareProbes } from "./packets/probed.ts";
export { endpointProbesOf, type Probe, probesOf } from "./packets/probes.ts";
export { addressIn, OUTER_INTERFACE, outsideAddress, type Source } from "./packets/sources.ts";
export { type KernelState, type View, viewOf } from "./packets/view.ts";
export { type OutcomeShares, UNTOUCHED, waysText } from "./packets/ways.ts";
export { byService, type Finding, type ServiceReport } from "./rules/finding.ts";
export { restored } from "./rules/restored.ts";
export { compareRules, hasForeignRules, renamedServices, servicesIn } from "./rules/rules.ts";
export { type BlockedPackets, type BlockedRequest, blockedPackets } from "./states/blocked.ts";
export { type Destination, destinationText } from "./states/destination.ts";
export {
  compareTraffic,
  type PlannedSide,
  type TrafficChange,
  type TrafficDifference,
  type TrafficOutcome,
} from "./states/traffic.ts";
export { isProxyChain, type Reader, readersOf, withoutProxy } from "./states/without-proxy.ts";
