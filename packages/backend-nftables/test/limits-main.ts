import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import type { ForwardingPlan, ServicePortGroup } from "@fairlead/core";
import { createRunner, openNftables } from "@fairlead/kernel";
import { addressHex, hostHex, NftBatch, type SetElement } from "@fairlead/netfilter/nft";
import { createNftablesBackend } from "../src/index.ts";
import { CLIENTS_SIZE } from "../src/plan/sticky.ts";

/**
 * Runs in a namespace of its own: fills the map of clients, has clients come that find no room, and prints where they
 * ended.
 */
const ENDPOINTS = 5;
const NEW_CLIENTS = 300;
const PROXIED = { verdict: "proxy", set: "cluster", masquerade: false } as const;
const run = createRunner();
const ip = (...args: readonly string[]) => run.run(["ip", ...args]);
await ip("link", "set", "lo", "up");
for (const range of ["10.144.0.0/24", "10.201.0.0/16"]) await ip("address", "add", range, "dev", "lo");
await ip("route", "add", "10.96.0.0/16", "dev", "lo");

const seen = new Map<string, string[]>();
let received = 0;
const servers = await Promise.all(Array.from({ length: ENDPOINTS }, (_, at) => serve(`10.144.0.${at + 1}`)));
const nft = await openNftables();
const backend = createNftablesBackend(nft, { family: "IPv4" });
const group = sticky();
const plan: ForwardingPlan = {
  family: "IPv4",
  groups: new Map([[group.id, group]]),
  node: { detector: { kind: "none" }, nodePortAddresses: { kind: "list", addresses: [] } },
  healthChecks: new Map(),
  foreignClusterIPs: new Set(),
  endpointCount: ENDPOINTS,
};
await backend.sync(plan);
await send(client(0));
await nft.commit(new NftBatch("ip", "kube-proxy").addElements("sticky-clients", others()));
for (let round = 0; round < 2; round++) for (let at = 0; at <= NEW_CLIENTS; at++) await send(client(at));
const full = Array.from({ length: NEW_CLIENTS + 1 }, (_, at) => seen.get(client(at)) ?? []);
const { elements } =
  (await nft.sets("ip", "kube-proxy", ({ name }) => name === "sticky-clients")).get("sticky-clients") ?? {};
// A full sync over a full map has to go through as well.
await createNftablesBackend(nft, { family: "IPv4" }).sync(plan);
await send(client(0));
for (const server of servers) server.close();
await nft.close();
process.stdout.write(JSON.stringify({ full, remembered: elements?.size, after: seen.get(client(0)) }));

function client(at: number): string {
  return `10.201.${1 + (at >> 7)}.${1 + (at & 127)}`;
}

function* others(): Generator<SetElement> {
  const number = hostHex(0x7fff_0000);
  for (let at = 1; at < CLIENTS_SIZE; at++) {
    const key = number + addressHex(`172.${16 + (at >> 16)}.${(at >> 8) & 255}.${at & 255}`);
    yield { key, value: hostHex(0) + number + number, timeout: 600_000 };
  }
}

async function serve(address: string): Promise<Socket> {
  const socket = createSocket("udp4", (_, { address: from }) => {
    seen.set(from, [...(seen.get(from) ?? []), address]);
    received += 1;
  });
  socket.bind(8080, address);
  await once(socket, "listening");
  return socket;
}

/** One datagram from a port of its own. */
async function send(from: string): Promise<void> {
  const socket = createSocket("udp4");
  socket.bind(0, from);
  await once(socket, "listening");
  const before = received;
  await new Promise<void>((resolve, reject) => {
    socket.send("x", 80, "10.96.0.2", (error) => (error ? reject(error) : resolve()));
  });
  // Each of them is served.
  while (received === before) await new Promise((resolve) => setImmediate(resolve));
  socket.close();
}

function sticky(): ServicePortGroup {
  const cluster = Array.from({ length: ENDPOINTS }, (_, at) => ({
    address: `10.144.0.${at + 1}`,
    port: 8080,
    local: true,
  }));
  return {
    id: "default/sticky/udp",
    name: "default/sticky",
    service: "default/sticky",
    family: "IPv4",
    protocol: "UDP",
    cluster,
    local: [],
    serving: cluster,
    endpointCount: ENDPOINTS,
    affinitySeconds: 600,
    frontends: [
      {
        kind: "cluster-ip",
        reach: "internal",
        at: "address",
        address: "10.96.0.2",
        port: 80,
        policy: "Cluster",
        treatments: { pod: PROXIED, node: PROXIED, outside: PROXIED },
      },
    ],
    annotations: {},
  };
}
