import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { LightApiServer, tlsFolder } from "@fairlead/testkit/api-server";
import { NODE, OBJECTS } from "./api-server.ts";

/** Serves the objects to clients with the token, on a port of 127.0.0.1 in the network namespace that it starts in. */
const [token] = process.argv.slice(2);
const pem = (name: string) => readFile(join(tlsFolder, `${name}.pem`), "utf8");
const server = new LightApiServer({ key: await pem("server-key"), cert: await pem("server") });
server.token = token;
server.put([NODE, ...OBJECTS]);
process.stdout.write(`${await server.start()}\n`);
