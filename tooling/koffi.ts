import { copyFileSync, mkdirSync, renameSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { BundlePlugin } from "./tsup.ts";

/**
 * Koffi's compiled code lies alongside a bundle, one file for each machine: netlink needs it. On other machines, and
 * without the files, a program goes on with the kernel's tools.
 */
export const koffiAlongside = koffiAlongsideOf(["linux-x64", "linux-arm64"]);

/** The same for the machines that the agent's bundle for Windows runs on. */
export const koffiAlongsideOnWindows = koffiAlongsideOf(["win32-x64"]);

/** The folder of the npm package with the code for a machine, such as `linux-x64`. */
export function koffiPackage(machine: string): string {
  return dirname(createRequire(import.meta.url).resolve(`@koromix/koffi-${machine}/package.json`));
}

/** @param machines koffi has a package for each */
function koffiAlongsideOf(machines: readonly string[]): BundlePlugin {
  return {
    name: "koffi-alongside",
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
        for (const machine of machines) {
          const code = join(koffiPackage(machine), machine.replace("-", "_"), "koffi.node");
          const shipped = join(outdir, `koffi-${machine}.node`);
          // Never written over: a process that has it mapped would end with it.
          copyFileSync(code, `${shipped}.new`);
          renameSync(`${shipped}.new`, shipped);
        }
      });
    },
  };
}
