export { type Consent, readConsent } from "./consent.ts";
export type { Stage } from "./decide.ts";
export type { ResourceState, SourceState } from "./facts.ts";
export {
  type KnownCIDR,
  type LastKnown,
  NOTHING_KNOWN,
  type ParsedLastKnown,
  parseLastKnown,
  serializeLastKnown,
} from "./last-known.ts";
export { Networks, type NetworksDecision } from "./networks.ts";
export type { CIDRChange, CIDRReport, NetworksReport, NetworksUpdate, SourceReport } from "./report.ts";
export { describeRule, type KnownNamespaces, ruleNeeds, type ServiceRule, serviceRule } from "./rules.ts";
export { AddressIndex, type ServicesView } from "./services.ts";
export type { NetworksSettings, Side, StaticCIDRs } from "./settings.ts";
export type { Conflict } from "./sides.ts";
export {
  CONSENT_NAME,
  cidrsOf,
  consentObject,
  NAMESPACES,
  type NetworkSource,
  NODES,
  type Reading,
  type ResourceRef,
  type Selection,
  type SourceKind,
  type SourceSettings,
} from "./source.ts";
export {
  type CustomSettings,
  customSource,
  networkSource,
  type SourceName,
  sourceKinds,
  VPCS,
} from "./source-kinds.ts";
