import { packageTests } from "@fairlead/tooling/vitest";

/** What `npm test` does not bring: helm and kustomize for `test:tools`, a built image for `test:image`. */
export default packageTests({
  include: ["tools/**/*.tools.ts"],
  reporters: ["default"],
  testTimeout: 30_000,
});
