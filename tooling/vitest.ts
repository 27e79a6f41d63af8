import { fileURLToPath } from "node:url";
import { defineConfig, type ViteUserConfig } from "vitest/config";

const TEMPORARY_FOLDER = fileURLToPath(new URL("temporary-folder.ts", import.meta.url));

/**
 * Test settings of a package. Workspace packages are taken from their sources, so tests need no build first.
 * Each run leaves its counts in .vitest/report.json, from which the root command sums up; FAIRLEAD_REPORT gives another
 * name, to runs that are beside others of the same package. Nothing is retried: a test that fails once has found
 * something.
 */
export function packageTests(test: NonNullable<ViteUserConfig["test"]> = {}): ViteUserConfig {
  const { FAIRLEAD_REPORT: report = "report" } = process.env;
  const conditions = ["@fairlead/source", "node", "import", "module", "default"];
  return defineConfig({
    resolve: { conditions },
    ssr: { resolve: { conditions, externalConditions: conditions } },
    // What global set-up imports is resolved in an environment of vitest's own.
    environments: { __vitest__: { resolve: { conditions, externalConditions: conditions } } },
    test: {
      include: ["src/**/*.test.ts", "test/**/*.test.ts"],
      globalSetup: TEMPORARY_FOLDER,
      retry: 0,
      // No measure of speed: what hangs ends, on a busy machine, too.
      testTimeout: 30_000,
      passWithNoTests: false,
      reporters: ["default", ["json", { outputFile: `.vitest/${report}.json` }]],
      ...test,
    },
  });
}
