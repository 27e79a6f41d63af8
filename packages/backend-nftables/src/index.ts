export { createNftablesBackend, type NftablesModeBackend } from "./backend.ts";
export { type ChosenDevices, chooseDevices, type Device, type DeviceFacts } from "./choose-devices.ts";
export { removeNftablesMode } from "./cleanup.ts";
export { differencesOf, type Sameness, type TableDifference } from "./damage.ts";
export { nftablesFacts, nftablesSemantics } from "./facts.ts";
export { configuredOptions, type NftablesOptions } from "./options.ts";
export {
  instanceOfTable,
  type LoopbackNodePorts,
  loopbackRefusalChain,
  type PlanSettings,
  tableName,
} from "./plan/context.ts";
export { FLOWTABLE } from "./plan/fast-path.ts";
export { RANGE_CHECKS } from "./plan/frame-sets.ts";
export { planTable, planTableSteps } from "./plan/write-table.ts";
export type { Devices, NftablesPort, TableNews } from "./port.ts";
