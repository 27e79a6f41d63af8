export * from "./addresses.ts";
export * from "./addresses.ts";
export * from "./addresses.ts";
export * from "./clusters.ts";
export { TestCluster } from "./clusters.ts";
export * from "./conformance/case.ts";
export * from "./conformance/case.ts";
export { type Beside, besideExpected, nftablesRow, userspaceExpected } from "./conformance/case.ts";
export * from "./conformance/expected.ts";
export * from "./conformance/options.ts";
export { conformanceTable } from "./conformance/table.ts";
export * from "./golden/golden.ts";
export * from "./golden/golden.ts";
export * from "./golden/golden.ts";
export { goldenPlannerOptions } from "./golden/golden.ts";
export type * from "./objects.ts";
export * from "./objects.ts";
export * from "./objects.ts";
export * from "./objects.ts";
export { kubernetesService, userDefinedNetwork } from "./objects.ts";
export * from "./run-case.ts";
export * from "./run-case.ts";
export * from "./run-case.ts";
export {
  type AskRelay,
  asSent,
  mergedDiffers,
  nodeEnvironment,
  relayedWays,
  tracedWays,
  tracePacket,
} from "./run-case.ts";
