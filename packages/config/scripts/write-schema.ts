import { readFileSync, writeFileSync } from "node:fs";
import { configurationSchema } from "../src/table/json-schema.ts";
import { COMPATIBILITY_PAGE, withTables } from "./compatibility-tables.ts";

/** Writes what follows from the configuration's table: the JSON Schema, and the tables of a page. `pnpm run schema`. */
writeFileSync(
  new URL("../schema/configuration.json", import.meta.url),
  `${JSON.stringify(configurationSchema(), undefined, 2)}\n`,
);
const page = new URL(`../../../${COMPATIBILITY_PAGE}`, import.meta.url);
writeFileSync(page, withTables(readFileSync(page, "utf8")));
