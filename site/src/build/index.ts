import { copyFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { build } from "vite";
import { siteDir } from "../paths.ts";
import { type WrittenPages, writePages } from "./pages.ts";

/**
 * The whole site: pages, search, and the scripts of diagrams and tracer.
 *
 * @param outDir absolute; what it contained goes
 */
export async function buildSite(outDir: string): Promise<WrittenPages> {
  const written = await writePages(outDir);
  await writeScripts(outDir);
  return written;
}

const require = createRequire(import.meta.url);

/** Into the folder of the pages: what site.js loads where a page asks for it, the tracer and Mermaid for diagrams. */
async function writeScripts(outDir: string): Promise<void> {
  const [assets, page] = [join(outDir, "assets"), join(siteDir, "src/page")];
  await build({
    root: page,
    configFile: false,
    logLevel: "warn",
    resolve: { conditions: ["@fairlead/source", "module", "browser", "production"] },
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    build: {
      outDir: assets,
      emptyOutDir: false,
      modulePreload: false,
      rolldownOptions: { input: join(page, "tracer/main.tsx"), output: { entryFileNames: "tracer.js" } },
    },
  });
  await copyFile(require.resolve("@mermaid-js/tiny"), join(assets, "mermaid.js"));
}
