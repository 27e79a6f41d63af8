export { diagnose } from "./doctor/diagnose.ts";
export type * from "./doctor/facts.ts";
export { byService, type Finding, type ServiceReport } from "./finding.ts";
export { compareIpvs, type IpvsCompareOptions, type IpvsObjects } from "./ipvs.ts";
export { addressesOf, serversOf, setsOf } from "./ipvs-text.ts";
export { compareNftables, servicesInTable } from "./nftables/compare.ts";
export { restored } from "./restored.ts";
export { compareRules, hasForeignRules, renamedServices, servicesIn } from "./rules.ts";
export { compareTraffic, type Kernel, type Probe } from "./traffic.ts";
