import { readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
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

/** Some bundled packages are CommonJS and call `require` for Node's own modules, which ESM does not have. */
const banner = `#!/usr/bin/env node
import { createRequire as createRequireOfBundle } from "node:module";
const require = createRequireOfBundle(import.meta.url);`;

export type BundlePlugin = NonNullable<Options["esbuildPlugins"]>[number];

/**
 * Gets node:http past its ESM face, which reads every export: that has Node load the whole client behind `http.WebSocket`, 30 ms
 * and 10 MB of resident memory for nothing.
 */
const httpWithoutClient: BundlePlugin = {
  name: "http-without-client",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(?:node:)?http$/ }, () => ({ path: "http", namespace: "builtin" }));
    onLoad({ filter: /.*/, namespace: "builtin" }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule(${JSON.stringify(`node:${path}`)});`,
    }));
  },
};

/**
 * Build settings of an app: one file that runs with nothing but Node beside it, made from the sources of the workspace's
 * packages. Modules that are imported later are in it, and begin when they are asked for.
 *
 * @param entry name of the file in dist → source file
 */
export function appBundle(entry: Record<string, string>, plugins: readonly BundlePlugin[] = []): Options {
  const { version } = JSON.parse(readFileSync("package.json", "utf8"));
  return {
    entry,
    format: ["esm"],
    platform: "node",
    target: "node22",
    noExternal: [/.*/],
    splitting: false,
    minify: true,
    keepNames: true,
    removeNodeProtocol: false,
    define: { FAIRLEAD_VERSION: JSON.stringify(version) },
    banner: { js: banner },
    esbuildPlugins: [httpWithoutClient, ...plugins],
    esbuildOptions(options) {
      options.conditions = ["@fairlead/source", "node", "import", "module", "default"];
      options.legalComments = "none";
      // A single letter beyond Latin-1 makes V8 keep the whole text at twice its size.
      options.charset = "ascii";
    },
  };
}

/**
 * The Kubernetes client library, which kubeconfigs that start programs alone need, has a file of its own beside the app: it
 * is larger than an app, and text that is never run is held in memory all the same.
 */
export const credentialsApart: BundlePlugin = {
  name: "credentials-apart",
  setup: ({ onResolve }) =>
    onResolve({ filter: /\/plugin-credentials\.ts$/ }, () => ({ path: "./plugin-credentials.js", external: true })),
};

export const credentialsEntry = { "plugin-credentials": "../../packages/watch/src/api/plugin-credentials.ts" };

/**
 * Node's own modules begin when the module that imports them does: a static import in the bundle would load those of every
 * module that is in it, for commands that use none of them.
 */
export const builtinsWhenUsed: BundlePlugin = {
  name: "builtins-when-used",
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^[a-z_/:]+$/ }, ({ path, kind }) =>
      isBuiltin(path) && kind !== "require-call" ? { path, namespace: "builtin" } : undefined,
    );
    onLoad({ filter: /./, namespace: "builtin" }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)});`,
    }));
  },
};
