export type { Side, Stage } from "./decide/claim.ts";
export type { Conflict } from "./decide/conflicts.ts";
export { type Consent, readConsent } from "./decide/consent-text.ts";
export type { ResourceState, SourceState } from "./decide/facts.ts";
export {
  type KnownCIDR,
  type LastKnown,
  NOTHING_KNOWN,
  type ParsedLastKnown,
  parseLastKnown,
  serializeLastKnown,
} from "./decide/last-known.ts";
export type { KnownNamespaces } from "./decide/namespaces.ts";
export { Networks } from "./decide/networks.ts";
export type { CIDRReport, NetworksReport, SourceReport } from "./decide/report.ts";
export { describeRule, ruleNeeds, type ServiceRule, serviceRule } from "./decide/service-rules.ts";
export type { NetworksDecision, NetworksSettings } from "./decide/types.ts";
export type { CIDRChange, NetworksUpdate } from "./decide/update.ts";
export type { StaticCIDRs } from "./decide/written.ts";
export { AddressIndex } from "./services/address-index.ts";
export type { ServicesView } from "./services/view.ts";
export { cidrsOf } from "./sources/cidrs-of.ts";
export { type CustomSettings, customSource } from "./sources/custom.ts";
export { networkSource, type SourceName, sourceKinds } from "./sources/index.ts";
export { VPCS } from "./sources/kube-ovn-subnets.ts";
export { CONSENT_NAME, consentObject, NAMESPACES, NODES } from "./sources/resources.ts";
export type { NetworkSource, Reading, ResourceRef, Selection, SourceKind, SourceSettings } from "./sources/source.ts";
