import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer, isIPv6 } from "node:net";
import { nftablesFacts } from "@fairlead/backend-nftables";
import { errorCode } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { openNftables } from "@fairlead/kernel";
import { endpointSlice, service, TestCluster } from "@fairlead/testkit";
import { servingBy } from "../../src/modes/nftables.ts";
import { Progress } from "../../src/sync/follower.ts";
import { recordedLog } from "./recorded-log.ts";
import { configOf } from "./running-agent.ts";

/**
 * A program: serves nftables mode with the flags of each argument, one after the other, in a network namespace that has
 * the addresses of `OF`, and prints what becomes of clients on the node.
 */

const OF = {
  IPv4: { loopback: "127.0.0.1", node: "192.0.2.10", pod: "10.144.154.71", clusterIP: "10.96.67.75" },
  IPv6: { loopback: "::1", node: "2001:db8::10", pod: "fd00:144::71", clusterIP: "fd00:96::75" },
} as const;
const FAMILIES = ["IPv4", "IPv6"] as const;
const GATE = "--feature-gates=KubeProxyNFTablesLocalhostNodePorts=true";

function planOf(family: IPFamily) {
  const { pod, clusterIP, node } = OF[family];
  const cluster = new TestCluster({
    nodeName: "node-a",
    families: [family],
    nodeIPs: { [family]: node },
    detectors: {},
    nodePortAddresses: { [family]: { kind: "list", addresses: [OF[family].loopback, node] } },
    masqueradeAll: false,
    semantics: nftablesFacts.semantics,
  });
  const ports = [
    { name: "web", port: 80, targetPort: 8080, nodePort: 30_080 },
    { name: "dns", port: 53, targetPort: 8053, nodePort: 30_053, protocol: "UDP" },
  ] as const;
  cluster.put(
    service("web", { type: "NodePort", clusterIPs: [clusterIP], ports: [...ports] }),
    endpointSlice("web-1", {
      service: "web",
      family,
      ports: ports.map(({ name, targetPort, ...rest }) => ({
        name,
        port: targetPort,
        protocol: "TCP",
        ...("protocol" in rest && { protocol: rest.protocol }),
      })),
      endpoints: [{ address: pod }],
    }),
  );
  cluster.replan();
  return cluster.plan(family);
}

/** What a TCP client reads; the error's code where it is refused. */
async function overTCP(host: string): Promise<string> {
  const socket = connect(30_080, host);
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
  const server = createServer((socket) => socket.end("pod")).listen(8080, pod);
  await once(server, "listening");
  const other = createSocket(family === "IPv6" ? "udp6" : "udp4").bind(30_053, loopback);
  other.on("message", (_, { port, address }) => other.send("another program", port, address));
  await once(other, "listening");
}

async function serve(what: string, flags: readonly string[]): Promise<void> {
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
  }
  await serving.relaying?.close(Promise.resolve());
  for (const [family] of serving.backends) print(`  ended, ${family}: TCP ${await overTCP(OF[family].loopback)}`);
  for (const { fields } of log.lines) print(JSON.stringify(fields));
  last = [...serving.backends.values()];
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

const client = await openNftables();
let last: readonly { cleanup(): Promise<void> }[] = [];
for (const family of FAMILIES) await listen(family);
await serve("off", ["--nodeport-addresses=primary,localhost"]);
await serve("gate only", [GATE]);
// Upstream's table goes on refusing TCP here (kubernetes/kubernetes#142183).
await serve("localhost", [GATE, "--nodeport-addresses=primary,localhost"]);
for (const backend of last) await backend.cleanup();
process.exit(0);
