import { packageTests } from "@fairlead/tooling/vitest";

export default packageTests();
