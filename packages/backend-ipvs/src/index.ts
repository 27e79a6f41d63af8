export { createIpvsBackend, type DeviceChange, type IpvsModeBackend } from "./backend.ts";
export { type IpvsCleanupOptions, removeIpvsMode } from "./cleanup.ts";
export { ipvsFacts, ipvsSemantics } from "./facts.ts";
export { configuredOptions, type IpvsOptions } from "./options.ts";
export { DEVICE, IPVS_FILTER, isScheduler, SCHEDULER_ANNOTATION, SCHEDULERS, type Scheduler } from "./plan/context.ts";
export { CHAINS } from "./plan/frame.ts";
export { SET_KEYS, type SetKey, setDefinition } from "./plan/sets.ts";
export { type RequiredSysctl, requiredSysctls, type SysctlFacts } from "./plan/sysctls.ts";
export type { IpvsPort, LinksPort, RulesPort, ServersPort, SetsPort } from "./port.ts";
