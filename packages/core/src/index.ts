export type * from "./backend.ts";
export type * from "./filter.ts";
export * from "./objects.ts";
export type * from "./plan.ts";
