export { createNftablesBackend, type NftablesModeBackend } from "./backend.ts";
export { removeNftablesMode } from "./cleanup.ts";
export { nftablesFacts } from "./facts.ts";
export { configuredOptions, type NftablesOptions } from "./options.ts";
export type { LoopbackNodePorts, PlanSettings } from "./plan/context.ts";
export { instanceOfTable, loopbackRefusalChain, tableName } from "./plan/names.ts";
export { planTable, planTableSteps } from "./plan/table.ts";
export type { Devices, NftablesPort, TableNews } from "./port.ts";
export { nftablesSemantics } from "./semantics.ts";
