import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { readNodeAddresses } from "../../src/addresses.ts";
import { createRunner } from "../../src/index.ts";
import { GROUPS, LONGEST_TOLD, openListening } from "../../src/netlink/listening.ts";
import { openRouteSocket, openTransactionSocket } from "../../src/netlink/socket.ts";
import { generationOf } from "../../src/nftables/exchange.ts";

/** Runs in a namespace of its own: another process sends forged answers to all that is open here. */
const [route, netfilter, listening] = [
  await openRouteSocket(),
  await openTransactionSocket(),
  await openListening(GROUPS.nftables),
];
listening.join();
const runner = createRunner();
const room = Buffer.alloc(LONGEST_TOLD);
const heard = () => {
  let bytes = 0;
  for (let told = listening.receive(room); told !== undefined; told = listening.receive(room)) bytes += told.length;
  return bytes;
};

const before = { addresses: await readNodeAddresses(route), generation: (await generationOf(netfilter)).generation };
const main = fileURLToPath(new URL("forge-main.ts", import.meta.url));
const group = `12/0/${1 << (GROUPS.nftables[0] - 1)}`;
await runner.run([process.execPath, "--no-warnings", main, ...ports(), group]);
const forged = heard();
const answer = async <T>(work: () => Promise<T>) => work().catch(String);
const addresses = await answer(() => readNodeAddresses(route));
const generation = await answer(async () => (await generationOf(netfilter)).generation);
await runner.run(["nft", "add", "table", "ip", "somebody"]);
const real = heard() > 0;
process.stdout.write(JSON.stringify({ before, after: { addresses, generation }, forged, real }));

/** Of this namespace's sockets: `sk Eth Pid Groups …`, the kernel's own without a number. */
function ports(): readonly string[] {
  const lines = readFileSync("/proc/thread-self/net/netlink", "utf8").split("\n").slice(1);
  return lines.flatMap((line) => {
    const [, protocol, port = "0"] = line.split(/\s+/);
    return Number(port) === 0 ? [] : [`${protocol}/${port}/0`];
  });
}
