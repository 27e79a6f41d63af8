import type { Options } from "tsup";

/**
 * Build settings of a published package: ESM with types beside it, one entry for each public subpath.
 *
 * @param entry subpath name → source file, for example `{ index: "src/index.ts", "fake/index": "src/fake/index.ts" }`
 */
export function libraryBuild(entry: Record<string, string> = { index: "src/index.ts" }): Options {
  return {
    entry,
    format: ["esm"],
    platform: "node",
    target: "node22",
    dts: true,
    clean: true,
    sourcemap: true,
    treeshake: true,
  };
}
