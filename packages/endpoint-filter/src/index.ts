export { OwnershipDelay } from "./delay.ts";
export { API_SERVER, createEndpointFilter, filterBySides } from "./filter.ts";
export {
  Memory,
  type MemoryScope,
  type ParsedMemory,
  parseMemory,
  type Remembered,
  serializeInSteps,
} from "./memory.ts";
export {
  type FilterOptions,
  type NeutralAddresses,
  type OtherOptions,
  OWNERSHIP_ANNOTATION,
  type Protection,
  type RuledOwner,
} from "./options.ts";
export { type CIDRSide, CIDRSides } from "./sides.ts";
export {
  type CIDRError,
  checkCIDR,
  type ExcludeCIDRs,
  type NamedCIDRs,
  parseExcludeCIDRs,
} from "./validate.ts";
