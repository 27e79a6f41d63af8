import { buildSite } from "./build/index.ts";
import { outDir } from "./paths.ts";

/** `pnpm site`: builds the documentation site into site/dist. */
const { right, uncommented } = await buildSite(outDir);
for (const problem of uncommented) process.stderr.write(`${problem}\n`);
if (!right || uncommented.length > 0) process.exitCode = 1;
