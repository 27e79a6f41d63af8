import { readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import type { Options } from "tsup";

/**
 * Build settings of a published package: ESM with types alongside it, one entry for each public subpath.
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
    removeNodeProtocol: false,
    clean: true,
    sourcemap: true,
    treeshake: true,
  };
}

/**
 * For packages whose types name Node's: `@types/node` is a dependency of theirs, and a compiler finds it from their own
 * files, whether a package manager hoists it or not.
 */
export const withNodeTypes = { dts: { banner: '/// <reference types="node" />' } } as const satisfies Options;

/**
 * A first line that every Node and every `env` takes, so that an old Node gets as far as the words about it. Some
 * bundled packages are CommonJS and call `require` for Node's own modules, which ESM does not have. Taking SIGUSR1
 * keeps Node's inspector closed.
 */
const BANNER = `#!/usr/bin/env node
import { createRequire as createRequireOfBundle } from "node:module";
const require = createRequireOfBundle(import.meta.url);
process.on("SIGUSR1", () => {});`;

export type BundlePlugin = NonNullable<Options["esbuildPlugins"]>[number];

/**
 * Node's own modules of these names come by a call when the module that imports them begins: a static import would
 * load, before anything else, what is imported anywhere in the bundle.
 */
function builtinsByCall(name: string, filter: RegExp): BundlePlugin {
  return {
    name,
    setup({ onResolve, onLoad }) {
      onResolve({ filter }, ({ path, kind }) =>
        isBuiltin(path) && kind !== "require-call" ? { path: path.replace(/^node:/, ""), namespace: name } : undefined,
      );
      onLoad({ filter: /./, namespace: name }, ({ path }) => ({
        contents: `module.exports = process.getBuiltinModule(${JSON.stringify(`node:${path}`)});`,
      }));
    },
  };
}

/**
 * The ESM face of node:http reads every export: that has Node load the whole client behind `http.WebSocket`, 30 ms and
 * 10 MB of resident memory for nothing.
 */
const httpWithoutClient = builtinsByCall("http-without-client", /^(?:node:)?http$/);

/** For programs that are started for one command: most use few of Node's modules. */
export const builtinsWhenUsed = builtinsByCall("builtins-when-used", /^(?:node:)?[a-z_/]+$/);

/** One file that runs with nothing but Node alongside it, made from the sources of the workspace's packages. */
const ONE_FILE = {
  format: ["esm"],
  platform: "node",
  target: "node22",
  noExternal: [/.*/],
  splitting: false,
  removeNodeProtocol: false,
  banner: { js: BANNER },
  esbuildOptions(options) {
    options.conditions = ["@fairlead/source", "node", "import", "module", "default"];
    options.legalComments = "none";
    // A single letter beyond Latin-1 makes V8 keep the whole text at twice its size.
    options.charset = "ascii";
  },
} satisfies Options;

/**
 * Build settings of an app. Modules that are imported later are in its file, and begin when they are asked for.
 *
 * @param entry name of the file in dist → source file
 */
export function appBundle(entry: Record<string, string>, plugins: readonly BundlePlugin[] = []): Options {
  const { version } = JSON.parse(readFileSync("package.json", "utf8"));
  return {
    ...ONE_FILE,
    entry,
    minify: true,
    // They cost a call for each function that is made, a tenth of a start; profiles are easier to read with them.
    keepNames: process.env["FAIRLEAD_KEEP_NAMES"] === "1",
    define: { FAIRLEAD_VERSION: JSON.stringify(version) },
    esbuildPlugins: [httpWithoutClient, ...plugins],
  };
}

/**
 * Build settings of a script of the test ground, for a machine that has no workspace.
 *
 * @param entry name of the file → source file
 * @param folder where the file goes
 */
export function scriptBundle(entry: Record<string, string>, folder: string): Options {
  return { ...ONE_FILE, entry, outDir: folder, outExtension: () => ({ js: ".mjs" }), config: false, silent: true };
}
