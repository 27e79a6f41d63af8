import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buildPage } from "@fairlead/console/build";
import { koffiAlongside } from "@fairlead/tooling/koffi";
import { appBundle, type BundlePlugin, builtinsWhenUsed } from "@fairlead/tooling/tsup";
import { defineConfig } from "tsup";

/** The console's page is read by that command only: alongside the program, not in it. */
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
 * The Kubernetes client library, which only commands that ask a cluster need, has a file of its own alongside the
 * program: it is larger than the program, and text that is never run is held in memory all the same.
 */
const libraryApart: BundlePlugin = {
  name: "client-library-apart",
  setup: ({ onResolve }) =>
    onResolve({ filter: /\/library\.ts$/ }, ({ kind }) =>
      kind === "entry-point" ? undefined : { path: "./kubernetes-client.js", external: true },
    ),
};

export default defineConfig([
  appBundle({ main: "src/main.ts" }, [libraryApart, koffiAlongside, builtinsWhenUsed, consolePage]),
  // What the pods of `connectivity` run: a text that goes into their command.
  appBundle({ "connectivity-pod": "src/commands/connectivity/pod-main.ts" }, [builtinsWhenUsed]),
  appBundle({ "kubernetes-client": "src/cluster/library.ts" }, [builtinsWhenUsed]),
]);
