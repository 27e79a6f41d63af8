import { packageTests } from "@fairlead/tooling/vitest";

export default packageTests({
  // One after the other: they share the machine's cores, and faults are timed.
  fileParallelism: false,
  // The rows of one cluster are probed side by side.
  maxConcurrency: 12,
  testTimeout: 60_000,
  hookTimeout: 60_000,
});
