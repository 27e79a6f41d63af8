import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buildPage } from "@fairlead/console/build";
import { koffiBeside } from "@fairlead/tooling/koffi";
import { appBundle, type BundlePlugin, builtinsWhenUsed } from "@fairlead/tooling/tsup";
import { defineConfig } from "tsup";

/** The console's page is read by that command only: beside the program, not in it. */
const consolePage: BundlePlugin = {
  name: "console-page",
  setup: ({ initialOptions: { outdir = "dist", sourcemap }, onEnd }) =>
    onEnd(async () => {
      const { html, sources } = await buildPage();
      await writeFile(join(outdir, "console.html"), html);
      if (sourcemap) await writeFile(join(outdir, "console.html.map"), JSON.stringify({ sources }));
    }),
};

/**
 * The Kubernetes client library, which only kubeconfigs with an auth-provider need, has a file of its own alongside the
 * program: it is larger than the program, and text that is never run is held in memory all the same.
 */
const authProviderApart: BundlePlugin = {
  name: "auth-provider-apart",
  setup: ({ onResolve }) =>
    onResolve({ filter: /\/auth-provider\.ts$/ }, ({ kind }) =>
      kind === "entry-point" ? undefined : { path: "./auth-provider.js", external: true },
    ),
};

export default defineConfig([
  appBundle({ main: "src/main.ts" }, [authProviderApart, koffiBeside, builtinsWhenUsed, consolePage]),
  appBundle({ "auth-provider": "src/inputs/auth-provider.ts" }),
]);
