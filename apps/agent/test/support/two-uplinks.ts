import { lines, type Runner } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";

/** Clients behind each of a node's two uplinks, and the node's address there. */
const UPLINKS = {
  first: { IPv4: ["198.51.100.7", "10.201.0.10"], IPv6: ["fd00:198::7", "fd00:201::10"] },
  second: { IPv4: ["203.0.113.7", "10.202.0.10"], IPv6: ["fd00:203::7", "fd00:202::10"] },
} as const;

/**
 * Wires a node with two uplinks, whose default route is by the first one, and a pod: `up0` and `up1` lead to a router
 * each, on which the client's address is.
 */
export async function wire(
  node: Runner,
  routers: readonly NetworkNamespace[],
  pod: NetworkNamespace,
  at: (namespace: NetworkNamespace) => Runner,
): Promise<void> {
  const batch = (runner: Runner, ...commands: readonly string[]) =>
    runner.run(["ip", "-batch", "-"], { input: `${commands.join("\n")}\n` });
  await node.run(["sh", "-c", SETTINGS]);
  for (const [i, router] of routers.entries()) {
    const [v4, v6] = [`10.20${i + 1}.0`, `fd00:20${i + 1}:`];
    const { IPv4, IPv6 } = UPLINKS[i === 0 ? "first" : "second"];
    await node.run(["ip", "link", "add", `up${i}`, "type", "veth", "peer", "name", "e0", "netns", String(router.pid)]);
    await batch(
      at(router),
      ...["link set lo up", "link set e0 up", `address add ${v4}.1/24 dev e0`, `address add ${v6}:1/64 dev e0 nodad`],
      ...[`address add ${IPv4[0]}/32 dev lo`, `address add ${IPv6[0]}/128 dev lo nodad`],
    );
    await batch(
      node,
      ...[`link set up${i} up`, `address add ${v4}.10/24 dev up${i}`, `address add ${v6}:10/64 dev up${i} nodad`],
      `route add default via ${v4}.1 dev up${i} metric ${i === 0 ? 100 : 500}`,
      `route add default via ${v6}:1 dev up${i} metric ${i === 0 ? 100 : 2000}`,
    );
  }
  await batch(
    node,
    "route add default via 10.202.0.1 dev up1 table 102",
    "route add default via fd00:202::1 dev up1 table 102",
  );
  await node.run(["ip", "link", "add", "pod0", "type", "veth", "peer", "name", "e0", "netns", String(pod.pid)]);
  await batch(
    node,
    ...["link set lo up", "link set pod0 up", "address add 10.144.1.1/24 dev pod0"],
    "address add fd00:144::1:1/112 dev pod0 nodad",
  );
  await batch(
    at(pod),
    ...["link set lo up", "link set e0 up", "address add 10.144.1.5/24 dev e0"],
    ...["address add fd00:144::1:5/112 dev e0 nodad", "route add default via 10.144.1.1"],
    "route add default via fd00:144::1:1",
  );
}

/** Strict filters would drop what comes by the second uplink before any rule sees it. */
const SETTINGS = [
  "for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $f; done",
  "echo 1 > /proc/sys/net/ipv4/ip_forward",
  "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding",
].join("; ");

const SERVER = 'require("net").createServer((s) => s.end("served")).listen(8080, "::", () => console.log("listening"))';

/** A server in a pod, that says the same to everybody. */
export async function startServer(pod: Runner): Promise<{ stop(): Promise<void> }> {
  const output = lines(pod.stream([process.execPath, "-e", SERVER], { timeoutMs: 0 }));
  await output.next();
  return {
    async stop() {
      await output.return();
    },
  };
}

const CLIENT = `
const [localAddress, host, times, patience] = process.argv.slice(1);
const once = () => new Promise((resolve) => {
  let text = "";
  const socket = require("net").connect({ localAddress, host, port: 30080 });
  socket.setTimeout(Number(patience), () => socket.destroy());
  socket.on("data", (data) => { text += data; }).on("error", () => {}).on("close", () => resolve(text === "served"));
});
Promise.all(Array.from({ length: Number(times) }, once)).then((all) => console.log(all.filter(Boolean).length));
`;

/**
 * How many of so many requests, at once, to the node's address on an uplink are answered, by family.
 *
 * @param patience milliseconds; a request that is lost takes no longer
 */
export async function answered(client: Runner, uplink: keyof typeof UPLINKS, times: number, patience: number) {
  const { IPv4, IPv6 } = UPLINKS[uplink];
  const ask = async ([source, to]: readonly [string, string]) =>
    Number((await client.run([process.execPath, "-e", CLIENT, source, to, String(times), String(patience)])).stdout);
  const [four, six] = await Promise.all([ask(IPv4), ask(IPv6)]);
  return { IPv4: four, IPv6: six };
}

/** How often TCP of a network namespace has sent a segment again, which it does for one that was lost. */
export async function sentAgain(client: Runner): Promise<number> {
  const { stdout } = await client.run(["cat", "/proc/net/snmp"]);
  const [names = [], values = []] = [...stdout.matchAll(/^Tcp: (.*)$/gm)].map(([, words = ""]) => words.split(" "));
  return Number(values[names.indexOf("RetransSegs")]);
}

const SEND_LARGE = `
const [address, host] = process.argv.slice(1);
const socket = require("dgram").createSocket(address.includes(":") ? "udp6" : "udp4");
socket.on("error", () => {}).bind({ address }, () => socket.send(Buffer.alloc(1400), 30080, host, () => socket.close()));
`;

/**
 * Sends a first datagram to the node's address on an uplink.
 *
 * @returns the path MTU that the client knows then, by family
 */
export async function knownMtu(client: Runner, uplink: keyof typeof UPLINKS) {
  const { IPv4, IPv6 } = UPLINKS[uplink];
  const ask = async ([source, to]: readonly [string, string]) => {
    await client.run([process.execPath, "-e", SEND_LARGE, source, to]);
    const { stdout } = await client.run(["ip", "route", "get", to, "from", source]);
    return Number(/ mtu (\d+)/.exec(stdout)?.[1]);
  };
  const [four, six] = [await ask(IPv4), await ask(IPv6)];
  return { IPv4: four, IPv6: six };
}
