import { packageTests } from "@fairlead/tooling/vitest";

/** Properties on a busy machine take their time. */
export default packageTests({ testTimeout: 60_000 });
