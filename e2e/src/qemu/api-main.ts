import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { RawObject } from "@fairlead/base";
import { LightApiServer } from "@fairlead/testkit/api-server";
import { parseAllDocuments } from "yaml";

/** In the guest: a light API server that has the objects of a folder, and says its URL once it listens. */
const [folder = "."] = process.argv.slice(2);
const api = new LightApiServer();
for (const name of readdirSync(folder)) {
  const documents = parseAllDocuments(readFileSync(join(folder, name), "utf8"));
  api.put(documents.map((document): RawObject & { readonly kind: string } => document.toJS()));
}
process.stdout.write(`${await api.start()}\n`);
