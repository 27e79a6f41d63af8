import { createIpset, createRunner, openNetfilterSocket, type Runner } from "../../src/index.ts";

/** Run in a namespace: prints the sets that are named as JSON, and starts no process for it. */
const noProcess: Runner = {
  ...createRunner(),
  stream: (argv) => {
    throw new Error(`a process was started: ${argv.join(" ")}`);
  },
};
const SETS: unknown[] = [];
for await (const set of createIpset(noProcess, { open: openNetfilterSocket }).save(process.argv.slice(2))) {
  SETS.push({ ...set, members: [...set.members].sort() });
}
process.stdout.write(JSON.stringify(SETS));
