export { dividingFilter } from "./dividing-filter.ts";
export { traceSlots } from "./slot-packets.ts";
export * from "./slots.ts";
export { noChange, type SlotChanges, World } from "./world.ts";
