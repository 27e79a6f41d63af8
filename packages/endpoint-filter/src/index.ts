export { createEndpointFilter } from "./filter.ts";
export { Memory } from "./memory/memory.ts";
export type { Remembered } from "./memory/remembered.ts";
export { type MemoryScope, type ParsedMemory, parseMemory, serialiseInSteps, serialiseMemory } from "./memory/text.ts";
export { type FilterOptions, OWNERSHIP_ANNOTATION, type RuledOwner } from "./options.ts";
export {
  type CIDRError,
  checkCIDR,
  coverAll,
  type ExcludeCIDRs,
  type NamedCIDRs,
  parseExcludeCIDRs,
} from "./validate.ts";
