import { text } from "node:stream/consumers";
import { createConntrack, createRunner } from "../../src/index.ts";
import { sweepAll } from "./cases.ts";

/** Run in a namespace: `sweepAll` by netlink, with the arguments of each that stand on standard input as JSON. */
const onFallback = (reason: unknown): never => {
  throw reason;
};
const conntrack = createConntrack(createRunner(), { onFallback });
const { each, kinds } = JSON.parse(await text(process.stdin));
const swept: unknown[] = [];
for (const doomed of each) {
  const before = process.cpuUsage();
  const seen = await sweepAll(conntrack, doomed, kinds);
  const { user, system } = process.cpuUsage(before);
  swept.push({ seen, cpuMilliseconds: (user + system) / 1_000 });
}
process.stdout.write(JSON.stringify(swept));
