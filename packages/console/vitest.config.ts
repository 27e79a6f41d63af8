import { packageTests } from "@fairlead/tooling/vitest";

export default packageTests({ testTimeout: 120_000, hookTimeout: 60_000 });
