import { packageTests } from "@fairlead/tooling/vitest";

/** Checks with helm and kustomize, which `npm test` does not bring: `pnpm --filter @fairlead/deploy run test:tools`. */
export default packageTests({
  include: ["tools/**/*.tools.ts"],
  reporters: ["default"],
});
