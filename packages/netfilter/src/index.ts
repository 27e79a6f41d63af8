export type * from "./rule.ts";
