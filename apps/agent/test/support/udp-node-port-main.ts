import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createNftablesBackend, nftablesFacts } from "@fairlead/backend-nftables";
import { createConntrack, createRunner, openNftables, openTracking } from "@fairlead/kernel";
import { endpointSlice, service, TestCluster } from "@fairlead/testkit";
import { CleaningQueue, cleanConntrack } from "../../src/conntrack.ts";

/**
 * A program: a UDP client of a node port whose endpoint goes, in a network namespace with the addresses below. Prints
 * who answers it, and what connection tracking has of it.
 */

const [NODE, PODS] = ["192.0.2.10", ["10.144.154.71", "10.144.154.72"]] as const;

const cluster = new TestCluster({
  nodeName: "node-a",
  families: ["IPv4"],
  nodeIPs: { IPv4: NODE },
  detectors: {},
  nodePortAddresses: { IPv4: { kind: "list", addresses: [NODE] } },
  masqueradeAll: false,
  semantics: nftablesFacts.semantics,
});
const port = { name: "dns", port: 53, targetPort: 8053, nodePort: 30_053, protocol: "UDP" } as const;
cluster.put(service("dns", { type: "NodePort", clusterIPs: ["10.96.0.10"], ports: [port] }));

const runner = createRunner();
const nft = await openNftables();
const conntrack = createConntrack(runner);
const tracking = await openTracking(runner);
const backend = createNftablesBackend(nft, { family: "IPv4" });
const queue = new CleaningQueue("IPv4");

/** A sync and what follows it, as the agent does it. */
async function endpoints(...addresses: readonly string[]): Promise<void> {
  cluster.put(
    endpointSlice("dns-1", {
      service: "dns",
      family: "IPv4",
      ports: [{ name: "dns", port: 8053, protocol: "UDP" }],
      endpoints: addresses.map((address) => ({ address })),
    }),
  );
  queue.changed(cluster.replan().changes.get("IPv4"));
  await backend.sync(cluster.plan("IPv4"));
  const needs = queue.take();
  if (needs !== undefined) await cleanConntrack(conntrack, cluster.lookup("IPv4"), needs, [NODE]);
}

async function tracked(): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { protocol, original, reply } of tracking.list()) {
    if (protocol !== "UDP" || original.destinationPort !== port.nodePort) continue;
    found.push(`${original.destination} answered by ${reply.source}`);
  }
  return found;
}

for (const pod of PODS) {
  const server = createSocket("udp4").bind(port.targetPort, pod);
  server.on("message", (_, from) => server.send(pod, from.port, from.address));
  await once(server, "listening");
}
const client = createSocket("udp4");
/** From the same port each time, as a client that never pauses. */
async function ask(): Promise<string> {
  const answer = once(client, "message");
  client.send("?", port.nodePort, NODE);
  return String((await answer)[0]);
}

function print(when: string, answer: string, entries: readonly string[]): void {
  process.stdout.write(`${when}: ${answer}; ${entries.join(", ")}\n`);
}

await endpoints(PODS[0]);
print("first", await ask(), await tracked());
await endpoints();
print("scaled to zero", "-", await tracked());
await endpoints(PODS[1]);
print("back", await ask(), await tracked());
process.exit(0);
