import { packageTests } from "@fairlead/tooling/vitest";

export default packageTests({ builds: ["test/support/build.ts"] });
