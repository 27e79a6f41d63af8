export { createIptablesBackend } from "./backend.ts";
export { removeIptablesMode } from "./cleanup.ts";
export { iptablesFacts } from "./facts.ts";
export { configuredOptions, type IptablesOptions } from "./options.ts";
export { FIXED_CHAINS } from "./plan/frame.ts";
export { COUNTERS, INVALID_DROPPED_COUNTER, LOCALHOST_ACCEPTED_COUNTER } from "./plan/names.ts";
export { type RequiredSysctl, requiredSysctls } from "./plan/sysctls.ts";
export type { RulesPort } from "./port.ts";
export { iptablesSemantics } from "./semantics.ts";
