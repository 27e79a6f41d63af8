export { type CIDRSide, CIDRSides } from "./cidr/sides.ts";
export { OwnershipDelay } from "./delay.ts";
export { createEndpointFilter, filterBySides } from "./filter.ts";
export { Memory } from "./memory/memory.ts";
export type { Remembered } from "./memory/remembered.ts";
export { type MemoryScope, type ParsedMemory, parseMemory, serializeInSteps, serializeMemory } from "./memory/text.ts";
export type { NeutralAddresses } from "./neutral.ts";
export {
  type FilterOptions,
  type OptionsBesideCIDRs,
  OWNERSHIP_ANNOTATION,
  type Protection,
  type RuledOwner,
} from "./options.ts";
export { API_SERVER } from "./protected.ts";
export {
  type CIDRError,
  checkCIDR,
  coverAll,
  type ExcludeCIDRs,
  type NamedCIDRs,
  parseExcludeCIDRs,
} from "./validate.ts";
