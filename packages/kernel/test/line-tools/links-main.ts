import { text } from "node:stream/consumers";
import { createLinks, createRunner, openRouteSocket, type Runner } from "../../src/index.ts";

/**
 * Run in a namespace: changes devices as standard input says, prints the addresses of the one that is named, and starts
 * no process.
 */
const noProcess: Runner = {
  ...createRunner(),
  run: async (argv) => {
    throw new Error(`a process was started: ${argv.join(" ")}`);
  },
};
const links = createLinks(noProcess, { open: openRouteSocket });
const refused = await links.change(JSON.parse(await text(process.stdin))).then(
  () => undefined,
  (error: unknown) => String(error),
);
const addresses = await links.addresses(process.argv[2] ?? "");
process.stdout.write(JSON.stringify({ refused, addresses: addresses && [...addresses].sort() }));
