import { text } from "node:stream/consumers";
import { createIpset, createRunner, openNetfilterSocket, type Runner } from "../../src/index.ts";

/** Run in a namespace: changes members of sets as standard input says, and starts no process for it. */
const noProcess: Runner = {
  ...createRunner(),
  run: async (argv) => {
    throw new Error(`a process was started: ${argv.join(" ")}`);
  },
};
await createIpset(noProcess, { open: openNetfilterSocket }).change(JSON.parse(await text(process.stdin)));
