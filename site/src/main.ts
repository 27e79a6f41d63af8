import { buildSite } from "./build/index.ts";
import { outDir } from "./paths.ts";

/** `pnpm site`: builds the documentation site into site/dist. */
if (!(await buildSite(outDir))) process.exitCode = 1;
