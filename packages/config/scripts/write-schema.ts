import { writeFileSync } from "node:fs";
import { configurationSchema } from "../src/schema/json-schema.ts";

/** Writes schema/configuration.json, which the package publishes: `pnpm run schema`. */
writeFileSync(
  new URL("../schema/configuration.json", import.meta.url),
  `${JSON.stringify(configurationSchema(), undefined, 2)}\n`,
);
