export { byService, type Finding, type ServiceReport } from "./finding.ts";
export { compareIpvs, type IpvsCompareOptions, type IpvsObjects } from "./ipvs.ts";
export { addressesOf, serversOf, setsOf } from "./ipvs-text.ts";
export { restored } from "./restored.ts";
export { compareRules, servicesIn } from "./rules.ts";
