import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { deployDir } from "../paths.ts";
import { valuesSchema } from "./values-schema.ts";

/** Writes what of values.schema.json follows from the agent's configuration: `pnpm run chart-schema`. */
const file = join(deployDir, "helm/fairlead/values.schema.json");
const configuration = join(deployDir, "../packages/config/schema/configuration.json");
const [schema, fields] = (await Promise.all([file, configuration].map((name) => readFile(name, "utf8")))).map((text) =>
  JSON.parse(text),
);
await writeFile(file, `${JSON.stringify(valuesSchema(schema, fields), undefined, 2)}\n`);
