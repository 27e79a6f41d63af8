import { createNodeAddresses, createRunner, openRouteListening, openRouteSocket } from "../src/index.ts";

/** Follows the addresses of the namespace that it runs in as an agent does, and prints each list as a line of JSON. */
const addresses = createNodeAddresses(createRunner(), {
  listen: openRouteListening,
  open: openRouteSocket,
  settleMs: 50,
});
for await (const list of addresses.watch({ signal: new AbortController().signal })) {
  process.stdout.write(`${JSON.stringify(list.map(({ address }) => address))}\n`);
}
