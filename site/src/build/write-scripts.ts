import { copyFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { build } from "vite";
import { siteDir } from "../paths.ts";

const require = createRequire(import.meta.url);

/** Into the folder of the pages: what site.js loads where a page asks for it, the tracer and Mermaid for diagrams. */
export async function writeScripts(outDir: string): Promise<void> {
  const assets = join(outDir, "assets");
  await build({
    root: join(siteDir, "src/page"),
    configFile: false,
    logLevel: "warn",
    resolve: { conditions: ["@fairlead/source", "module", "browser", "production"] },
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    build: {
      outDir: assets,
      emptyOutDir: false,
      lib: { entry: "tracer/main.tsx", formats: ["es"], fileName: () => "tracer.js" },
    },
    define: { "process.env.NODE_ENV": JSON.stringify("production") },
  });
  await copyFile(require.resolve("@mermaid-js/tiny"), join(assets, "mermaid.js"));
}
