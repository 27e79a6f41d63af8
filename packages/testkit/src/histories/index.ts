export * from "./histories.ts";
export { dividingFilter, noChange, type SlotChanges, traceSlots, World } from "./histories.ts";
