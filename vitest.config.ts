import { packageTests } from "./tooling/vitest.ts";

/** All packages at once, by kind: `vitest run --project pure`. */
export default packageTests({
  folders: "{packages/*,apps/*,lab,bench,deploy,e2e,site,scripts,tooling}",
  builds: ["apps/agent/test/support/build.ts", "apps/cli/test/support/build.ts"],
  test: { maxConcurrency: 12 },
});
