import { writeFileSync } from "node:fs";
import { COMMANDS } from "../src/commands/table.ts";
import { referencePage } from "../src/reference.ts";

/** Writes docs/cli.md: `pnpm run reference`. */
writeFileSync(new URL("../../../docs/cli.md", import.meta.url), referencePage(COMMANDS));
