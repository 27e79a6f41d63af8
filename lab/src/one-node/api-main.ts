import { createInterface } from "node:readline";
import { collectionOf, LightApiServer } from "@fairlead/testkit/api-server";

/**
 * A light API server inside a namespace: says its URL once it listens, then takes arrays of objects as JSON, a line
 * each, and answers each line with an empty one. Ends with its input.
 */
const api = new LightApiServer();
process.stdout.write(`${await api.start()}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  for (const object of JSON.parse(line)) api.store.put(collectionOf(object), object);
  process.stdout.write("\n");
}
await api.stop();
