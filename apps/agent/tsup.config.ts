import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { defineConfig, type Options } from "tsup";

const { version } = JSON.parse(readFileSync("package.json", "utf8"));

/** Some bundled packages are CommonJS and call `require` for Node's own modules, which ESM does not have. */
const banner = `#!/usr/bin/env node
import { createRequire as createRequireOfBundle } from "node:module";
const require = createRequireOfBundle(import.meta.url);`;

const bundle: Options = {
  format: ["esm"],
  platform: "node",
  target: "node22",
  noExternal: [/.*/],
  splitting: false,
  minify: true,
  keepNames: true,
  define: { FAIRLEAD_VERSION: JSON.stringify(version) },
  banner: { js: banner },
  esbuildOptions(options) {
    options.conditions = ["@fairlead/source", "node", "import", "module", "default"];
    options.legalComments = "none";
    // A single letter beyond Latin-1 makes V8 keep the whole text at twice its size.
    options.charset = "ascii";
  },
};

type Plugin = NonNullable<Options["esbuildPlugins"]>[number];

const credentialsApart: Plugin = {
  name: "credentials-apart",
  setup: ({ onResolve }) =>
    onResolve({ filter: /\/plugin-credentials\.ts$/ }, () => ({ path: "./plugin-credentials.js", external: true })),
};

/** Koffi has a package for each machine; those of the machines that the image is made for lie beside the bundle. Without it the agent goes on. */
const machines = ["linux-x64", "linux-arm64"] as const;
const koffiBeside: Plugin = {
  name: "koffi-beside",
  setup({ onLoad, onEnd, initialOptions }) {
    onLoad({ filter: /\/koffi\/src\/koffi\/src\/static\.js$/ }, () => ({
      contents: `
        import { createRequire } from "node:module";
        export const loadStatic = (machine) => createRequire(import.meta.url)("./koffi-" + machine + ".node");
      `,
    }));
    onEnd(() => {
      const { outdir = "dist" } = initialOptions;
      mkdirSync(outdir, { recursive: true });
      for (const machine of machines) copyFileSync(koffiBinary(machine), join(outdir, `koffi-${machine}.node`));
    });
  },
};

function koffiBinary(machine: (typeof machines)[number]): string {
  const folder = dirname(createRequire(import.meta.url).resolve(`@koromix/koffi-${machine}/package.json`));
  return join(folder, machine.replace("-", "_"), "koffi.node");
}

/**
 * The agent is one file that runs with nothing but Node beside it, made from the sources of the workspace's packages. The
 * Kubernetes client library, which --allow-exec-credentials alone needs, has a file of its own: it is larger than the
 * agent, and text that is never run is held in memory all the same.
 */
export default defineConfig([
  {
    ...bundle,
    entry: { main: "src/main.ts" },
    esbuildPlugins: [credentialsApart, koffiBeside],
  },
  { ...bundle, entry: { "plugin-credentials": "../../packages/watch/src/api/plugin-credentials.ts" } },
]);
