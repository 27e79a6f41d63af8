import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import type { ForwardingPlan, PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import { createRunner, openNftables } from "@fairlead/kernel";
import { createNftablesBackend } from "../src/index.ts";

/**
 * Runs in a namespace of its own: sends datagrams to services whose endpoints are sockets of this process, and prints
 * who got how many.
 */
const PORT = 8080;
const SENT = 4000;
const CLIENTS = 300;
/** Of a class of 6, of which one slot is empty, and one more than the draw that always hits has. */
const ENDPOINTS = 5;
const endpoint = (number: number): PlanEndpoint => ({ address: `10.144.0.${number}`, port: PORT, local: true });
const PROXIED = { verdict: "proxy", set: "cluster", masquerade: true } as const;

const run = createRunner();
const ip = (...args: readonly string[]) => run.run(["ip", ...args]);
await ip("link", "set", "lo", "up");
await ip("address", "add", "10.144.0.0/16", "dev", "lo");
await ip("route", "add", "10.96.0.0/16", "dev", "lo");

const counts = new Map<string, number>();
let nextPort = 10_000;
let received = 0;
const servers = await Promise.all(
  Array.from({ length: ENDPOINTS + 1 }, (_, number) => serve(`10.144.0.${number + 1}`)),
);

const nft = await openNftables();
const backend = createNftablesBackend(nft, { family: "IPv4" });
const groups = new Map([plain(ENDPOINTS), sticky(ENDPOINTS), hashed(ENDPOINTS)].map((group) => [group.id, group]));
const plan: ForwardingPlan = {
  family: "IPv4",
  groups,
  node: { detector: { kind: "none" }, nodePortAddresses: { kind: "list", addresses: [] } },
  healthChecks: new Map(),
  foreignClusterIPs: new Set(),
  endpointCount: 3 * ENDPOINTS,
};
await backend.sync(plan);

/** From one address and ever other ports. */
const even = await countOf(async () => {
  for (let at = 0; at < SENT; at++) await send("10.144.9.9", "10.96.0.1");
});
const oneClient = await countOf(async () => {
  for (let at = 0; at < 100; at++) await send("10.144.9.9", "10.96.0.2");
});
const clients = await countOf(async () => {
  for (let at = 0; at < CLIENTS; at++) await send(`10.144.${10 + (at >> 8)}.${at & 255}`, "10.96.0.2");
});
const { stdout: listed } = await run.run(["nft", "list", "table", "ip", "kube-proxy"]);
await run.run(["nft", "-c", "-f", "-"], { input: listed });
const chosen = Object.keys(oneClient)[0] ?? "";
await change(withoutAndWith(sticky(ENDPOINTS), (address) => address !== chosen));
const afterItWent = await countOf(async () => {
  for (let at = 0; at < 100; at++) await send("10.144.9.9", "10.96.0.2");
});
await backend.sync(plan);
const afterFullSync = await countOf(async () => {
  for (let at = 0; at < 100; at++) await send("10.144.9.9", "10.96.0.2");
});
const hashedBefore = await endpointsOfClients();
await change(without(hashed(ENDPOINTS), "10.144.0.1"));
const hashedAfter = await endpointsOfClients();
for (const server of servers) server.close();
await nft.close();
process.stdout.write(
  JSON.stringify({
    ...{ sent: SENT, listed, even, oneClient, clients, chosen, afterItWent, afterFullSync },
    ...{ hashedBefore, hashedAfter },
  }),
);

async function serve(address: string): Promise<Socket> {
  const socket = createSocket("udp4", () => {
    counts.set(address, (counts.get(address) ?? 0) + 1);
    received += 1;
  });
  socket.bind(PORT, address);
  await once(socket, "listening");
  return socket;
}

/** One datagram from a port of its own. */
async function send(from: string, to: string): Promise<void> {
  const socket = createSocket("udp4");
  // A port that was used before would be taken for the flow of before.
  socket.bind(nextPort++, from);
  await once(socket, "listening");
  const before = received;
  await new Promise<void>((resolve, reject) => {
    socket.send("x", 80, to, (error) => (error ? reject(error) : resolve()));
  });
  // Each of them is served.
  while (received === before) await new Promise((resolve) => setImmediate(resolve));
  socket.close();
}

/** Where each of some clients of the service that hashes goes: all of its datagrams to one, or it is told as both. */
async function endpointsOfClients(): Promise<readonly string[]> {
  const all: string[] = [];
  for (let at = 0; at < CLIENTS; at++) {
    const counted = await countOf(async () => {
      for (let again = 0; again < 2; again++) await send(`10.144.${10 + (at >> 8)}.${at & 255}`, "10.96.0.3");
    });
    all.push(Object.keys(counted).join(" and "));
  }
  return all;
}

async function countOf(work: () => Promise<void>): Promise<Readonly<Record<string, number>>> {
  counts.clear();
  await work();
  return Object.fromEntries(counts);
}

async function change(after: ServicePortGroup): Promise<void> {
  const before = groups.get(after.id);
  groups.set(after.id, after);
  await backend.apply(plan, {
    family: "IPv4",
    groups: new Map([[after.id, { ...(before && { before }), after }]]),
    healthChecks: new Map(),
    foreignClusterIPs: { added: [], removed: [] },
  });
}

/** The same service without some endpoints, and with one that it did not have. */
function withoutAndWith(group: ServicePortGroup, stays: (address: string) => boolean): ServicePortGroup {
  return { ...group, cluster: [...group.cluster.filter(({ address }) => stays(address)), endpoint(ENDPOINTS + 1)] };
}

function without(group: ServicePortGroup, gone: string): ServicePortGroup {
  return { ...group, cluster: group.cluster.filter(({ address }) => address !== gone) };
}

function plain(count: number): ServicePortGroup {
  const cluster = Array.from({ length: count }, (_, number) => endpoint(number + 1));
  return {
    id: "default/plain/udp",
    name: "default/plain",
    service: "default/plain",
    family: "IPv4",
    protocol: "UDP",
    cluster,
    local: [],
    serving: cluster,
    endpointCount: count,
    frontends: [
      {
        kind: "cluster-ip",
        reach: "internal",
        at: "address",
        address: "10.96.0.1",
        port: 80,
        policy: "Cluster",
        treatments: { pod: PROXIED, node: PROXIED, outside: PROXIED },
      },
    ],
    annotations: {},
  };
}

function sticky(count: number): ServicePortGroup {
  const group = plain(count);
  return {
    ...group,
    id: "default/sticky/udp",
    name: "default/sticky",
    affinitySeconds: 600,
    frontends: group.frontends.map((frontend) => ({ ...frontend, address: "10.96.0.2" })),
  };
}

function hashed(count: number): ServicePortGroup {
  const group = plain(count);
  return {
    ...group,
    id: "default/hashed/udp",
    name: "default/hashed",
    balance: "source-hash",
    frontends: group.frontends.map((frontend) => ({ ...frontend, address: "10.96.0.3" })),
  };
}
