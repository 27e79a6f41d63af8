import { readFileSync, writeFileSync } from "node:fs";
import { SOURCE_FILES } from "./source-files.ts";

/** Writes into each file what follows from the sources: `pnpm run sources`. */
for (const { path, rewritten } of SOURCE_FILES) {
  const file = new URL(`../../../${path}`, import.meta.url);
  writeFileSync(file, rewritten(readFileSync(file, "utf8")));
}
