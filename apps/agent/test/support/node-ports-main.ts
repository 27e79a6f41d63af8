/**
 * A program for a network namespace that has the addresses below: serves node ports in nftables mode and prints what
 * becomes of clients on the node. Its argument says which: `loopback`, with the flags of each configuration one after
 * the other; `udp`, a client whose endpoint goes, and what connection tracking has of it.
 */

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer, isIPv6 } from "node:net";
import { createNftablesBackend, nftablesFacts } from "@fairlead/backend-nftables";
import { errorCode } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { createConntrack, createRunner, type NftablesClient, openNftables, openTracking } from "@fairlead/kernel";
import { endpointSlice, service, TestCluster } from "@fairlead/testkit";
import { CleaningQueue, cleanConntrack } from "../../src/conntrack.ts";
import { servingBy } from "../../src/modes/nftables.ts";
import { Progress } from "../../src/sync/follower.ts";
import { configOf, recordedLog } from "./fake-node.ts";

const OF = {
  IPv4: { loopback: "127.0.0.1", node: "192.0.2.10", pod: "10.144.154.71", clusterIP: "10.96.67.75" },
  IPv6: { loopback: "::1", node: "2001:db8::10", pod: "fd00:144::71", clusterIP: "fd00:96::75" },
} as const;
/** No interface has them; the routes of the test let a client here send from them. */
const NEIGHBOR = { IPv4: "203.0.113.9", IPv6: "2001:db8:9::9" } as const;
const OTHER_POD = "10.144.154.72";
const FAMILIES = ["IPv4", "IPv6"] as const;
const GATE = "--feature-gates=KubeProxyNFTablesLocalhostNodePorts=true";

/** A cluster in which a Service of these node ports has no endpoint yet. */
function clusterOf(family: IPFamily, nodePortAddresses: readonly string[], clusterIP: string, ports: readonly Port[]) {
  const cluster = new TestCluster({
    nodeName: "node-a",
    families: [family],
    nodeIPs: { [family]: OF[family].node },
    detectors: {},
    nodePortAddresses: { [family]: { kind: "list", addresses: nodePortAddresses } },
    masqueradeAll: false,
    semantics: nftablesFacts.semantics,
  });
  cluster.put(service("web", { type: "NodePort", clusterIPs: [clusterIP], ports: [...ports] }));
  return cluster;
}

function slice(family: IPFamily, ports: readonly Port[], addresses: readonly string[]) {
  return endpointSlice("web-1", {
    service: "web",
    family,
    ports: ports.map(({ name, targetPort, protocol }) => ({ name, port: targetPort, protocol })),
    endpoints: addresses.map((address) => ({ address })),
  });
}

const DNS = { name: "dns", port: 53, targetPort: 8053, nodePort: 30_053, protocol: "UDP" } as const;
const WEB = { name: "web", port: 80, targetPort: 8080, nodePort: 30_080, protocol: "TCP" } as const;
type Port = typeof DNS | typeof WEB;

function planOf(family: IPFamily) {
  const { pod, clusterIP, node, loopback } = OF[family];
  const cluster = clusterOf(family, [loopback, node], clusterIP, [WEB, DNS]);
  cluster.put(slice(family, [WEB, DNS], [pod]));
  cluster.replan();
  return cluster.plan(family);
}

/** What a TCP client reads; the error's code where it is refused. */
async function overTCP(host: string, localAddress?: string): Promise<string> {
  const socket = connect({ port: 30_080, host, ...(localAddress !== undefined && { localAddress }) });
  try {
    const [data] = await once(socket, "data");
    return String(data);
  } catch (error) {
    return errorCode(error) ?? "?";
  } finally {
    socket.destroy();
  }
}

/** The same of UDP, at a port where a program on the node listens on the loopback address. */
async function overUDP(host: string): Promise<string> {
  const socket = createSocket(isIPv6(host) ? "udp6" : "udp4");
  try {
    const connected = once(socket, "connect");
    socket.connect(30_053, host);
    await connected;
    const answer = once(socket, "message");
    socket.send("?");
    return String((await answer)[0]);
  } catch (error) {
    return errorCode(error) ?? "?";
  } finally {
    socket.close();
  }
}

async function listen(family: IPFamily): Promise<void> {
  const { pod, loopback } = OF[family];
  const server = createServer((socket) => socket.on("error", () => {}).end("pod")).listen(8080, pod);
  await once(server, "listening");
  const other = createSocket(family === "IPv6" ? "udp6" : "udp4").bind(30_053, loopback);
  other.on("message", (_, { port, address }) => other.send("another program", port, address));
  await once(other, "listening");
}

/** @returns what cleans up after it */
async function serve(client: NftablesClient, what: string, flags: readonly string[]) {
  const config = configOf(["--proxy-mode=nftables", ...flags]);
  const log = recordedLog();
  const serving = servingBy(client, { config, families: FAMILIES, log, progress: new Progress() });
  for (const [family, backend] of serving.backends) {
    await backend.sync(planOf(family));
    const { loopback, node } = OF[family];
    const nft = family === "IPv4" ? "ip" : "ip6";
    const rejected = await client.counted(nft, "kube-proxy", "localhost-nodeport-reject-udp");
    const [tcp, atNode, udp] = [await overTCP(loopback), await overTCP(node), await overUDP(loopback)];
    const now = await client.counted(nft, "kube-proxy", "localhost-nodeport-reject-udp");
    print(`${what} ${family}: TCP ${tcp}, at the node's address ${atNode}, UDP ${udp}, counted ${rejected} to ${now}`);
    const [own, neighbor] = [await overTCP(loopback, node), await overTCP(loopback, NEIGHBOR[family])];
    print(`  TCP from the node's address ${own}, from a neighbor's ${neighbor}`);
  }
  await serving.relaying?.close(Promise.resolve());
  for (const [family] of serving.backends) print(`  ended, ${family}: TCP ${await overTCP(OF[family].loopback)}`);
  for (const { fields } of log.lines) print(JSON.stringify(fields));
  return [...serving.backends.values()];
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function loopback(): Promise<void> {
  const client = await openNftables();
  for (const family of FAMILIES) await listen(family);
  await serve(client, "off", ["--nodeport-addresses=primary,localhost"]);
  await serve(client, "gate only", [GATE]);
  // Upstream's table goes on refusing TCP here (kubernetes/kubernetes#142183).
  const last = await serve(client, "localhost", [GATE, "--nodeport-addresses=primary,localhost"]);
  for (const backend of last) await backend.cleanup();
}

async function udp(): Promise<void> {
  const { node, clusterIP, pod } = OF.IPv4;
  const pods = [pod, OTHER_POD] as const;
  const cluster = clusterOf("IPv4", [node], clusterIP, [DNS]);
  const runner = createRunner();
  const [conntrack, tracking] = [createConntrack(runner), await openTracking(runner)];
  const backend = createNftablesBackend(await openNftables(), { family: "IPv4" });
  const queue = new CleaningQueue("IPv4");

  /** A sync and what follows it, as the agent does it. */
  const endpoints = async (...addresses: readonly string[]) => {
    cluster.put(slice("IPv4", [DNS], addresses));
    queue.changed(cluster.replan().changes.get("IPv4"));
    await backend.sync(cluster.plan("IPv4"));
    const needs = queue.take();
    if (needs !== undefined) await cleanConntrack(conntrack, cluster.lookup("IPv4"), needs, [node]);
  };
  const tracked = async () => {
    const found: string[] = [];
    for await (const { protocol, original, reply } of tracking.list()) {
      if (protocol !== "UDP" || original.destinationPort !== DNS.nodePort) continue;
      found.push(`${original.destination} answered by ${reply.source}`);
    }
    return found.join(", ");
  };
  for (const each of pods) {
    const server = createSocket("udp4").bind(DNS.targetPort, each);
    server.on("message", (_, from) => server.send(each, from.port, from.address));
    await once(server, "listening");
  }
  const client = createSocket("udp4");
  /** From the same port each time, as a client that never pauses. */
  const ask = async () => {
    const answer = once(client, "message");
    client.send("?", DNS.nodePort, node);
    return String((await answer)[0]);
  };
  await endpoints(pods[0]);
  print(`first: ${await ask()}; ${await tracked()}`);
  await endpoints();
  print(`scaled to zero: -; ${await tracked()}`);
  await endpoints(pods[1]);
  print(`back: ${await ask()}; ${await tracked()}`);
}

await { loopback, udp }[process.argv[2] === "udp" ? "udp" : "loopback"]();
process.exit(0);
