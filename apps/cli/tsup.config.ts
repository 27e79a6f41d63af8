import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buildPage } from "@fairlead/console/build";
import { koffiBeside } from "@fairlead/tooling/koffi";
import {
  appBundle,
  type BundlePlugin,
  builtinsWhenUsed,
  CREDENTIALS_ENTRY,
  credentialsApart,
  YAML_THREAD_ENTRY,
} from "@fairlead/tooling/tsup";
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

export default defineConfig([
  appBundle({ main: "src/main.ts" }, [credentialsApart, koffiBeside, builtinsWhenUsed, consolePage]),
  appBundle(CREDENTIALS_ENTRY),
  appBundle(YAML_THREAD_ENTRY),
]);
