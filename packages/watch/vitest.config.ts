import { packageTests } from "@fairlead/tooling/vitest";

const { FAIRLEAD_TEST_APISERVER = "" } = process.env;

export default packageTests(
  // The test ground runs these beside its control plane (e2e/src/specs/services/watch.ts).
  FAIRLEAD_TEST_APISERVER === "" ? { exclude: ["**/node_modules/**", "test/real-apiserver.test.ts"] } : {},
);
