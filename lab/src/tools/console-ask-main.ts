import { ConsoleClient } from "./console-client.ts";

/** Asks a console as its page does, in the namespace in which it is served. Arguments: its URL, and a path. */
const [, , url = "", path = ""] = process.argv;
process.stdout.write(JSON.stringify(await (await ConsoleClient.open(url)).ask(path)));
