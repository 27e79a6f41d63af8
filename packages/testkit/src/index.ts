export * from "./addresses.ts";
export * from "./clusters.ts";
export * from "./conformance/case.ts";
export * from "./conformance/expected.ts";
export * from "./conformance/options.ts";
export { conformanceTable } from "./conformance/table.ts";
export * from "./golden.ts";
export * from "./objects.ts";
export * from "./run-case.ts";
