import { packageTests } from "@fairlead/tooling/vitest";

export default packageTests({ globalSetup: ["test/support/build.ts"], testTimeout: 60_000 });
