import { createNodeAddresses, createRunner, openRouteSocket, type Runner } from "../src/index.ts";

/** Run in a namespace: prints the node's addresses as netlink gives them, and starts no process. */
const noProcess: Runner = {
  ...createRunner(),
  run: async (argv) => {
    throw new Error(`a process was started: ${argv.join(" ")}`);
  },
};
process.stdout.write(JSON.stringify(await createNodeAddresses(noProcess, { open: openRouteSocket }).list()));
