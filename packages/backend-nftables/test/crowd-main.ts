import { once } from "node:events";
import { connect, createServer } from "node:net";
import { VirtualClock } from "@fairlead/base/testing";
import { createRunner, openNftables } from "@fairlead/kernel";
import { addressHex, NftBatch } from "@fairlead/netfilter/nft";
import { goldenNode } from "@fairlead/testkit";
import { CROWD_CLIENTS, type CrowdHistory, type CrowdNode, crowdHistory, followCrowd } from "@fairlead/testkit/crowds";
import fc from "fast-check";
import { createNftablesBackend } from "../src/index.ts";
import { kubeProxyAffinitySet } from "../src/plan/context.ts";
import { plannerOptions } from "./support/golden.ts";

/**
 * Runs in a namespace of its own: 200 clients connect to a service over a random history, after each step of it. Prints
 * how many histories it went through, and what is wrong.
 *
 *     crowd-main.ts HISTORIES SEED
 */
const [histories = 1, seed = Date.now()] = process.argv.slice(2).map(Number);
const NODE = goldenNode(false);
const NODE_ADDRESS = NODE.addresses[0] ?? "";
const ENDPOINTS = "10.144.128.0/24";

const run = createRunner();
const ip = (...args: readonly string[]) => run.run(["ip", ...args]);
await ip("link", "set", "lo", "up");
for (const address of [ENDPOINTS, `${NODE_ADDRESS}/32`, ...CROWD_CLIENTS.map((client) => `${client}/32`)])
  await ip("address", "add", address, "dev", "lo");
// Routed to lo, what is rejected would not be answered.
await ip("link", "add", "out", "type", "veth", "peer", "name", "far");
await ip("link", "set", "far", "up");
await ip("link", "set", "out", "up");
await ip("route", "add", "10.96.0.0/16", "dev", "out");

const server = createServer((socket) => {
  socket.on("error", () => {});
  socket.end(`${socket.localAddress}:${socket.localPort}`);
});
server.listen(8080, "0.0.0.0");
await once(server, "listening");
const nft = await openNftables();

// Each connection has a source port of its own. The kernel remembers for 120 s what became of a SYN that was rejected,
// and another one from the same port to the same address takes the same way, whatever the rules say by then.
const FIRST_PORT = 20_000;

let connections = 0;
const wrong: string[] = [];
for (const [at, history] of fc.sample(crowdHistory(8), { numRuns: histories, seed }).entries()) {
  await nft.commit(new NftBatch("ip", "kube-proxy").addTable().deleteTable());
  await followCrowd(inRealTime(history), node()).catch((error: Error) => wrong.push(`history ${at}: ${error.message}`));
}
server.close();
await nft.close();
process.stdout.write(JSON.stringify({ seed, histories, connections, wrong }));

/** Nothing waits for a kernel's clock. */
function inRealTime(history: CrowdHistory): CrowdHistory {
  return history.filter(({ step }) => step.kind !== "long-wait");
}

function node(): CrowdNode {
  const backendAnew = () => createNftablesBackend(nft, { family: "IPv4" });
  let backend = backendAnew();
  const restart: CrowdNode["restart"] = (plan) => {
    backend = backendAnew();
    return backend.sync(plan);
  };
  return {
    options: plannerOptions(NODE),
    clock: new VirtualClock(),
    nodeAddress: NODE_ADDRESS,
    sharesFrontends: true,
    apply: (plan, change) => backend.apply(plan, change),
    fullSync: (plan) => backend.sync(plan),
    restart,
    afterKubeProxy: async (plan, clients) => {
      const [group] = plan.groups.values();
      const timeout = 1000 * (group?.affinitySeconds ?? 0);
      const batch = new NftBatch("ip", "kube-proxy");
      for (const endpoint of group?.cluster ?? []) {
        const name = kubeProxyAffinitySet(group?.name ?? "", "TCP", endpoint);
        batch.addSet({ name, key: ["ipv4_addr"], flags: ["dynamic", "timeout"], timeout });
        const own = [...clients].filter(([, one]) => one === `${endpoint.address}:${endpoint.port}`);
        batch.addElements(
          name,
          own.map(([client]) => ({ key: addressHex(client) })),
        );
      }
      await nft.commit(batch);
      return restart(plan);
    },
    connect: ask,
  };
}

async function ask(client: string, { address, port }: { readonly address: string; readonly port: number }) {
  connections += 1;
  const localPort = FIRST_PORT + (connections % 40_000);
  const socket = connect({ host: address, port, localAddress: client, localPort, noDelay: true });
  let text = "";
  socket.setEncoding("utf8").on("data", (data: string) => {
    text += data;
  });
  try {
    await once(socket, "close");
    return text;
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : String(error);
  }
}
