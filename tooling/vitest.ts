import { defineConfig, type ViteUserConfig } from "vitest/config";

/**
 * Test settings of a package. Workspace packages are taken from their sources, so tests need no build first.
 * Nothing is retried: a test that fails once has found something.
 */
export function packageTests(test: NonNullable<ViteUserConfig["test"]> = {}): ViteUserConfig {
  const conditions = ["@fairlead/source", "node", "import", "module", "default"];
  return defineConfig({
    resolve: { conditions },
    ssr: { resolve: { conditions, externalConditions: conditions } },
    test: { include: ["src/**/*.test.ts", "test/**/*.test.ts"], retry: 0, passWithNoTests: false, ...test },
  });
}
