/** Namespaces of nodes, fabric and the outside, with their addresses, links and routes. */

import type { IPFamily } from "@fairlead/core";
import type { Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace } from "@fairlead/kernel/netns";
import {
  ANYWHERE,
  address,
  applyLines,
  applySettings,
  type IpLines,
  kernelSettings,
  route,
  ruleForInterface,
  runnerIn,
  up,
  veth,
} from "../../wire.ts";

/** The namespaces of a cluster without its pods, wired. */
export interface Ground {
  readonly families: readonly IPFamily[];
  readonly fabric: NetworkNamespace;
  readonly outside: NetworkNamespace;
  readonly nodes: readonly GroundNode[];
}

export interface GroundNode {
  readonly name: string;
  readonly index: number;
  readonly addresses: Readonly<Partial<Record<IPFamily, string>>>;
  readonly namespace: NetworkNamespace;
  readonly runner: Runner;
}

/** Settings of the lab for hosts that route, and for hosts that do not. */
export const router = kernelSettings("fabric");
export const host = kernelSettings("outside");

export const NODE_SETTINGS = {
  // An unanswered SYN expires soon: the next connection from the same port is a new one, and passes the rules again.
  "net/netfilter/nf_conntrack_tcp_timeout_syn_sent": "2",
} as const;

/** @param opened gets what has to be closed */
export async function openGround(
  families: readonly IPFamily[],
  count: number,
  opened: AsyncDisposableStack,
): Promise<Ground> {
  const fabric = opened.use(await createNamespace());
  const alongside = async () => opened.use(await createNamespace({ alongside: fabric }));
  const outside = await alongside();
  const nodes = await Promise.all(
    Array.from({ length: count }, async (_, at) => describeNode(at + 1, families, await alongside())),
  );
  const ground = { families, fabric, outside, nodes };
  await wire(ground);
  return ground;
}

const END = "end";

/**
 * For iptables-restore. A rule and not a route of type unreachable: the kernel reports those only a few times a
 * second.
 */
const fabricFilter: Readonly<Record<IPFamily, string>> = {
  IPv4: rejectAt("icmp-host-unreachable"),
  IPv6: rejectAt("icmp6-no-route"),
};

/** Before there is any way: what no rule of a node has translated is refused. */
export async function rejectAtTheEnd(runner: Runner, families: readonly IPFamily[]): Promise<void> {
  for (const family of families) {
    const tool = family === "IPv4" ? "iptables-restore" : "ip6tables-restore";
    await runner.run([tool], { input: fabricFilter[family] });
  }
}

/** The routing table for what comes from outside. */
const FROM_OUTSIDE = 100;

export async function routeFromOutside(runner: Runner, families: readonly IPFamily[]): Promise<void> {
  for (const family of families) {
    const flag = family === "IPv4" ? "-4" : "-6";
    await applyLines(runner, [ruleForInterface("outside", FROM_OUTSIDE)], [flag]);
  }
}

export async function podNamespace({ fabric }: Ground): Promise<NetworkNamespace> {
  const namespace = await createNamespace({ alongside: fabric });
  await applySettings(runnerIn(namespace), host);
  return namespace;
}

/** What lies behind the bridge that the nodes are on. */
interface Edge {
  readonly families: readonly IPFamily[];
  /** In the order of `gateNetwork`. */
  readonly nodes: readonly Readonly<Partial<Record<IPFamily, string>>>[];
  readonly outsidePid: number;
}

/** The fabric's end of the link to the outside. */
const GATEWAY_ADDRESS: Readonly<Record<IPFamily, string>> = { IPv4: "198.51.100.1", IPv6: "fd00:198:51::1" };

/** Addresses of no host that the outside routes to a node: for externalIPs and load balancers. */
const gateNetwork: Readonly<Record<IPFamily, (node: number) => string>> = {
  IPv4: (node) => `198.18.${node}.0/24`,
  IPv6: (node) => `fd00:18::${node}:0/112`,
};

/** The outside, its ways to the nodes, and the end of everything else. */
export function edgeLines({ families, nodes, outsidePid }: Edge): IpLines {
  return [
    veth("outside", "eth0", outsidePid),
    up("outside"),
    // The end of everything that no rule of a node has translated; what is sent there is rejected before
    // (fabricFilter).
    `link add ${END} type veth peer name ${END}-peer`,
    up(END),
    up(`${END}-peer`),
    ...families.flatMap((family) => [
      address("outside", `${GATEWAY_ADDRESS[family]}/${PREFIX_LENGTH[family]}`),
      route(ANYWHERE[family], { dev: END }),
      route(SERVICE_CIDRS[family], { via: nodes[0]?.[family] ?? "", table: FROM_OUTSIDE }),
      ...nodes.map((addresses, at) =>
        route(gateNetwork[family](at + 1), { via: addresses[family] ?? "", table: FROM_OUTSIDE }),
      ),
    ]),
  ];
}

export function outsideLines(families: readonly IPFamily[]): IpLines {
  return [
    up("eth0"),
    ...families.flatMap((family) => [
      address("eth0", `${OUTSIDE_ADDRESS[family]}/${PREFIX_LENGTH[family]}`),
      address("eth0", `${STRANGER_ADDRESS[family]}/${PREFIX_LENGTH[family]}`),
      route(ANYWHERE[family], { via: GATEWAY_ADDRESS[family], src: OUTSIDE_ADDRESS[family] }),
    ]),
  ];
}

/**
 * The addresses of a cluster of namespaces. Several clusters use the same ones: each has networks of its own. None of
 * them is routed anywhere on the machine.
 */
export const SERVICE_CIDRS: Readonly<Record<IPFamily, string>> = { IPv4: "10.96.0.0/12", IPv6: "fd00:10:96::/108" };

export const PREFIX_LENGTH: Readonly<Record<IPFamily, number>> = { IPv4: 24, IPv6: 64 };

/** Of the bridge that the nodes are on. */
export const FABRIC_NETWORK: Readonly<Record<IPFamily, string>> = { IPv4: "172.30.0.0/24", IPv6: "fd00:30::/64" };

/** The fabric's own; the API server is there too, unless the cluster is in a guest. */
export const FABRIC_ADDRESS: Readonly<Record<IPFamily, string>> = { IPv4: "172.30.0.1", IPv6: "fd00:30::1" };

/** Two that are outside, so that source ranges can let in one of them. */
export const OUTSIDE_ADDRESS: Readonly<Record<IPFamily, string>> = { IPv4: "198.51.100.7", IPv6: "fd00:198:51::7" };
export const STRANGER_ADDRESS: Readonly<Record<IPFamily, string>> = { IPv4: "198.51.100.8", IPv6: "fd00:198:51::8" };

export const gateAddress: Readonly<Record<IPFamily, (node: number, count: number) => string>> = {
  IPv4: (node, count) => `198.18.${node}.${1 + (count % 250)}`,
  IPv6: (node, count) => `fd00:18::${node}:${(1 + count).toString(16)}`,
};

export const MAX_NODES = 8;

/** `node-a` … */
export function nodeName(index: number): string {
  return `node-${"abcdefgh"[index - 1] ?? index}`;
}

export function familiesOnly(
  families: readonly IPFamily[],
  addresses: Readonly<Record<IPFamily, string>>,
): Readonly<Partial<Record<IPFamily, string>>> {
  return Object.fromEntries(families.map((family) => [family, addresses[family]]));
}

/** Counts up, so that no two services of a cluster meet at one address. */
export function gateCounter(): () => number {
  let count = 0;
  return () => count++;
}

/** @param index from 1 */
const nodeAddress: Readonly<Record<IPFamily, (index: number) => string>> = {
  IPv4: (index) => `172.30.0.${10 + index}`,
  IPv6: (index) => `fd00:30::${10 + index}`,
};

function describeNode(index: number, families: readonly IPFamily[], namespace: NetworkNamespace): GroundNode {
  const addresses = Object.fromEntries(families.map((family) => [family, nodeAddress[family](index)]));
  return { name: nodeName(index), index, addresses, namespace, runner: runnerIn(namespace) };
}

/** What connects the namespaces of a cluster: every route ends in the fabric. */
interface Wires {
  readonly families: readonly IPFamily[];
  readonly nodes: readonly { readonly name: string; readonly index: number; readonly pid: number }[];
  readonly outsidePid: number;
}

async function wire({ families, fabric, outside, nodes }: Ground): Promise<void> {
  const wires: Wires = {
    families,
    nodes: nodes.map(({ name, index, namespace }) => ({ name, index, pid: namespace.pid })),
    outsidePid: outside.pid,
  };
  await Promise.all([
    applySettings(runnerIn(fabric), router),
    applySettings(runnerIn(outside), host),
    ...nodes.map((node) => applySettings(node.runner, { ...router, ...NODE_SETTINGS })),
  ]);
  await wireFabric(runnerIn(fabric), wires);
  await Promise.all([
    ...nodes.map(({ index, runner }) => applyLines(runner, nodeLines(index, families))),
    applyLines(runnerIn(outside), outsideLines(families)),
  ]);
}

async function wireFabric(runner: Runner, wires: Wires): Promise<void> {
  await rejectAtTheEnd(runner, wires.families);
  await applyLines(runner, fabricLines(wires));
  await routeFromOutside(runner, wires.families);
}

function fabricLines({ families, nodes, outsidePid }: Wires): IpLines {
  return [
    "link add br0 type bridge",
    up("br0"),
    ...nodes.flatMap(({ name, pid }) => [...bridged(name, "eth0", pid), ...bridged(`${name}-t`, "eth1", pid)]),
    ...families.map((family) => address("br0", `${FABRIC_ADDRESS[family]}/${PREFIX_LENGTH[family]}`)),
    ...edgeLines({
      families,
      nodes: nodes.map(({ index }) => ({ IPv4: nodeAddress.IPv4(index), IPv6: nodeAddress.IPv6(index) })),
      outsidePid,
    }),
  ];
}

function rejectAt(answer: string): string {
  const rules = ["FORWARD", "OUTPUT"].map((chain) => `-A ${chain} -o ${END} -j REJECT --reject-with ${answer}`);
  return ["*filter", ...rules, "COMMIT\n"].join("\n");
}

function bridged(name: string, end: string, pid: number): IpLines {
  return [veth(name, end, pid), `link set ${name} master br0`, up(name)];
}

function nodeLines(index: number, families: readonly IPFamily[]): IpLines {
  return [
    up("eth0"),
    up("eth1"),
    ...families.flatMap((family) => [
      address("eth0", `${nodeAddress[family](index)}/${PREFIX_LENGTH[family]}`),
      route(ANYWHERE[family], { via: FABRIC_ADDRESS[family] }),
    ]),
  ];
}
