export { createIpvsBackend } from "./backend.ts";
export { type CleanupOptions, removeIpvsMode } from "./cleanup.ts";
export type { IpvsOptions } from "./options.ts";
export { DEVICE } from "./plan/names.ts";
export { isScheduler, SCHEDULER_ANNOTATION, SCHEDULERS, type Scheduler } from "./plan/schedulers.ts";
export { SET_KEYS, type SetKey, setDefinition } from "./plan/sets.ts";
export { type RequiredSysctl, requiredSysctls, type SysctlFacts } from "./plan/sysctls.ts";
export type { IpvsPort, LinksPort, Payload, RulesPort, ServersPort, SetsPort } from "./port.ts";
export { ipvsSemantics } from "./semantics.ts";
