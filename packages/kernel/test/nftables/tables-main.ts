import { createRunner, isNftTableThere } from "../../src/index.ts";

/** Runs in a namespace of its own: asks for tables before and after one was made, and prints the answers. */
const runner = createRunner();
const ask = async () => [
  await isNftTableThere("IPv4", "kube-proxy"),
  await isNftTableThere("IPv6", "kube-proxy"),
  await isNftTableThere("IPv4", "kube"),
];
const before = await ask();
await runner.run(["nft", "add", "table", "ip", "kube-proxy"]);
await runner.run(["nft", "add", "table", "inet", "kube"]);
process.stdout.write(JSON.stringify([before, await ask()]));
