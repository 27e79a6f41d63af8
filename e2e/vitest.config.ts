import { packageTests } from "@fairlead/tooling/vitest";

// The rows of one cluster are probed side by side.
export default packageTests({ test: { maxConcurrency: 12 } });
