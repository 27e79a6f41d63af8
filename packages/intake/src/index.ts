export { type FamilyConflicts, familyConflicts } from "./family-conflicts.ts";
export { type FilterSettings, filterSettings } from "./filter-settings.ts";
export { NodeInputs, type NodeInputsParts } from "./node-inputs.ts";
export { type NodeIPs, nodeIPs, type PrimaryFamily, primaryFamily } from "./node-ips.ts";
export { nodePortAddressesFor, selectsIPv4Loopback } from "./node-port-addresses.ts";
export { type OwnershipRow, ownershipReport, ownershipRow } from "./ownership-report.ts";
export { type IntakeOptions, type ProxySubscriptions, type Resource, subscriptions } from "./subscriptions.ts";
