export { createIptablesBackend } from "./backend.ts";
export { removeIptablesMode } from "./cleanup.ts";
export { iptablesFacts, iptablesSemantics } from "./facts.ts";
export { configuredOptions, type IptablesOptions } from "./options.ts";
export { FIXED_CHAINS } from "./plan/frame.ts";
export { COUNTERS } from "./plan/group-names.ts";
export { type RequiredSysctl, requiredSysctls } from "./plan/settings.ts";
export type { RulesPort } from "./port.ts";
