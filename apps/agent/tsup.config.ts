import { copyFileSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import {
  appBundle,
  type BundlePlugin,
  CREDENTIALS_ENTRY,
  credentialsApart,
  YAML_THREAD_ENTRY,
} from "@fairlead/tooling/tsup";
import { defineConfig } from "tsup";

/**
 * Koffi has a package for each machine; those of the machines that the image is made for lie beside the bundle. Without
 * it the agent goes on.
 */
const MACHINES = ["linux-x64", "linux-arm64"] as const;
const koffiBeside: BundlePlugin = {
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
      for (const machine of MACHINES) copyFileSync(koffiBinary(machine), join(outdir, `koffi-${machine}.node`));
    });
  },
};

function koffiBinary(machine: (typeof MACHINES)[number]): string {
  const folder = dirname(createRequire(import.meta.url).resolve(`@koromix/koffi-${machine}/package.json`));
  return join(folder, machine.replace("-", "_"), "koffi.node");
}

export default defineConfig([
  appBundle({ main: "src/main.ts" }, [credentialsApart, koffiBeside]),
  appBundle(CREDENTIALS_ENTRY),
  appBundle(YAML_THREAD_ENTRY),
]);
