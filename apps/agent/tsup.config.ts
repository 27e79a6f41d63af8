import { readFileSync } from "node:fs";
import { defineConfig } from "tsup";

const { version } = JSON.parse(readFileSync("package.json", "utf8"));

/** Some bundled packages are CommonJS and call `require` for Node's own modules, which ESM does not have. */
const banner = `#!/usr/bin/env node
import { createRequire as createRequireOfBundle } from "node:module";
const require = createRequireOfBundle(import.meta.url);`;

/** One file that runs with nothing but Node beside it, made from the sources of the workspace's packages. */
export default defineConfig({
  entry: { main: "src/main.ts" },
  format: ["esm"],
  platform: "node",
  target: "node22",
  noExternal: [/.*/],
  splitting: false,
  clean: true,
  minify: true,
  keepNames: true,
  define: { FAIRLEAD_VERSION: JSON.stringify(version) },
  banner: { js: banner },
  esbuildOptions(options) {
    options.conditions = ["@fairlead/source", "node", "import", "module", "default"];
    options.legalComments = "none";
  },
});
