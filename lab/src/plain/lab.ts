/** Two nodes, their pods and clients in namespaces, without a control plane. */

import { IP_FAMILIES } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { Argv, Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace } from "@fairlead/kernel/netns";
import {
  apiServer,
  type Host,
  hosts,
  NETWORKS,
  NODE_A,
  NODE_B,
  outside,
  SECOND_NODE_ADDRESS,
  stranger,
} from "@fairlead/testkit";
import { type Peer, startPeer } from "../peer/process.ts";
import type { ListenPorts } from "../peer/protocol.ts";
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
} from "../wire.ts";

export interface LabOptions {
  readonly podPorts: ListenPorts;
  /** Where the nodes and the sink listen, so that what no rule translates is answered too. */
  readonly landingPorts: ListenPorts;
}

/** The running test ground. */
export interface Lab {
  readonly namespaces: ReadonlyMap<string, NetworkNamespace>;
  namespace(name: string): NetworkNamespace;
  /** Runs programs inside a namespace. */
  runner(name: string): Runner;
  peer(host: Host): Peer;
  dispose(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Builds the whole test ground. What it started ends with `dispose`, or with this process in whatever way it ends. */
export async function openLab(options: LabOptions): Promise<Lab> {
  const opened = new AsyncDisposableStack();
  try {
    const namespaces = await openNamespaces(opened);
    await wire(namespaces);
    const peers = await startPeers(namespaces, options, opened);
    const kept = opened.move();
    const dispose = () => kept.disposeAsync();
    return {
      namespaces,
      namespace: (name) => known(namespaces, name),
      runner: (name) => runnerIn(known(namespaces, name)),
      peer: (host) => known(peers, namespaceOf(host)),
      dispose,
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

export function namespaceOf(host: Host): string {
  if (host === outside || host === stranger) return "outside";
  return host === apiServer ? "sink" : host.name;
}

/** The node's side of a pod's link. */
function podInterface(pod: Host): string {
  return pod.node === NODE_A.name && pod.interface !== undefined ? pod.interface : `pod-${pod.name}`;
}

/**
 * The test ground: two nodes on a bridge in `fabric`, pods of two networks behind them, clients outside, and `sink`,
 * the end of all routes: what no rule translates arrives there and is answered, so that "untranslated" is seen and
 * nothing ever leaves the machine. Every one of these is a network namespace.
 */
const FIXED_NAMESPACES = ["fabric", "sink", "outside", "node-a", "node-b"] as const;

/** Pods, each in a namespace of its own. */
const pods: readonly Host[] = hosts.filter(({ place }) => place === "pod");

async function openNamespaces(opened: AsyncDisposableStack): Promise<ReadonlyMap<string, NetworkNamespace>> {
  const [first, ...others] = [...FIXED_NAMESPACES, ...pods.map(({ name }) => name)];
  const base = opened.use(await createNamespace());
  const more = await Promise.all(
    others.map(async (name) => [name, opened.use(await createNamespace({ alongside: base }))] as const),
  );
  return new Map([[first, base], ...more]);
}

type FixedNamespace = (typeof FIXED_NAMESPACES)[number];

/** Routing tables for what comes from the nodes and from the sink. */
const FROM_NODES = 100;
const FROM_SINK = 200;

/** The same in both families, each in a batch of its own. */
const fabricRules: IpLines = [ruleForInterface("br0", FROM_NODES), ruleForInterface("sink", FROM_SINK)];

async function wire(namespaces: ReadonlyMap<string, NetworkNamespace>): Promise<void> {
  const pids = new Map([...namespaces].map(([name, { pid }]) => [name, pid]));
  const pid = (name: FixedNamespace) => known(pids, name);
  const runner = (name: string) => runnerIn(known(namespaces, name));
  await Promise.all([...namespaces.keys()].map((name) => applySettings(runner(name), kernelSettings(name))));
  const link = (name: string, lines: IpLines) => applyLines(runner(name), lines);
  await link(
    "fabric",
    fabricLines({ "node-a": pid("node-a"), "node-b": pid("node-b"), outside: pid("outside"), sink: pid("sink") }),
  );
  await Promise.all(["-4", "-6"].map((family) => applyLines(runner("fabric"), fabricRules, [family])));
  await Promise.all([NODE_A, NODE_B].map((node) => link(node.name, nodeLines(node, pids))));
  await Promise.all([
    link("sink", sinkLines()),
    ...["iptables", "ip6tables"].map((tool) => runner("sink").run(ownUdpAnswers(tool))),
    link("outside", outsideLines()),
    ...pods.map((pod) => link(pod.name, podLines(pod))),
  ]);
}

async function startPeers(
  namespaces: ReadonlyMap<string, NetworkNamespace>,
  { podPorts, landingPorts }: LabOptions,
  opened: AsyncDisposableStack,
): Promise<ReadonlyMap<string, Peer>> {
  const landings: readonly string[] = ["node-a", "node-b", "sink"];
  const names = [...namespaces.keys()].filter((name) => name !== "fabric");
  const peers = await Promise.all(
    names.map(async (name) => {
      const listen = landings.includes(name) ? landingPorts : podPorts;
      const peer = await startPeer(known(namespaces, name), { name, listen });
      opened.defer(() => peer.stop());
      return [name, peer] as const;
    }),
  );
  return new Map(peers);
}

/** A datagram to an address that the sink has taken in is answered from that address: only NAT remembers it. */
function ownUdpAnswers(tool: string): Argv {
  return [tool, "-t", "nat", "-A", "PREROUTING", "-p", "udp", "-j", "REDIRECT"];
}

function known<T>(map: ReadonlyMap<string, T>, name: string): T {
  const value = map.get(name);
  if (value === undefined) throw new Error(`there is no ${name} in the lab`);
  return value;
}

function podsOf(node: Host): readonly Host[] {
  return pods.filter((pod) => pod.node === node.name);
}

/** The fabric's own addresses: on the nodes' bridge, toward the outside and toward the sink. */
const FABRIC_ADDRESSES = {
  nodes: { IPv4: "10.201.0.1", IPv6: "fd00:201::1" },
  outside: { IPv4: "198.51.100.1", IPv6: "fd00:198:51::1" },
  strangers: { IPv4: "198.18.0.1", IPv6: "fd00:198:18::1" },
  sink: { IPv4: "100.64.0.1", IPv6: "fd00:64::1" },
} as const;

const SINK_ADDRESSES = { IPv4: "100.64.0.2", IPv6: "fd00:64::2" } as const;

const prefix = (family: IPFamily) => (family === "IPv4" ? 24 : 64);

/** @param pids the processes of the namespaces at the other ends */
function fabricLines(pids: Readonly<Record<"node-a" | "node-b" | "outside" | "sink", number>>): IpLines {
  return [
    "link add br0 type bridge",
    up("br0"),
    ...(["node-a", "node-b"] as const).flatMap((node) => [
      veth(node, "eth0", pids[node]),
      `link set ${node} master br0`,
      up(node),
    ]),
    veth("outside", "eth0", pids.outside),
    up("outside"),
    veth("sink", "eth0", pids.sink),
    up("sink"),
    ...IP_FAMILIES.flatMap(fabricRoutes),
  ];
}

function fabricRoutes(family: IPFamily): IpLines {
  const on = (at: keyof typeof FABRIC_ADDRESSES) => `${FABRIC_ADDRESSES[at][family]}/${prefix(family)}`;
  const viaA = { via: NODE_A.addresses[family] };
  const toPods = (table?: number) =>
    [NODE_A, NODE_B].flatMap((node) =>
      podsOf(node).map((pod) =>
        route(pod.addresses[family], { via: node.addresses[family], ...(table !== undefined && { table }) }),
      ),
    );
  const frontends = [NETWORKS.services, NETWORKS.loadBalancers, NETWORKS.external].map((network) => network[family]);
  return [
    address("br0", on("nodes")),
    address("outside", on("outside")),
    address("outside", on("strangers")),
    address("sink", on("sink")),
    // From outside: frontends are node-a's, as a load balancer or a router would have it.
    ...[...frontends, SECOND_NODE_ADDRESS[family]].map((network) => route(network, viaA)),
    ...toPods(),
    route(ANYWHERE[family], { type: "unreachable" }),
    // From the nodes: frontends go to the sink, for they would come back for ever.
    route(NETWORKS.nodes[family], { dev: "br0", table: FROM_NODES }),
    route(NETWORKS.outside[family], { dev: "outside", table: FROM_NODES }),
    route(NETWORKS.strangers[family], { dev: "outside", table: FROM_NODES }),
    route(SECOND_NODE_ADDRESS[family], { ...viaA, table: FROM_NODES }),
    ...toPods(FROM_NODES),
    route(ANYWHERE[family], { via: SINK_ADDRESSES[family], table: FROM_NODES }),
    // From the sink: everything back through the node that it came through, which tracks the connection.
    route(ANYWHERE[family], { ...viaA, table: FROM_SINK }),
  ];
}

/** The sink owns every frontend's address; its answers go back the way they came. */
function sinkLines(): IpLines {
  return IP_FAMILIES.flatMap((family) => [
    address("eth0", `${SINK_ADDRESSES[family]}/${prefix(family)}`),
    up("eth0"),
    route(ANYWHERE[family], { via: FABRIC_ADDRESSES.sink[family] }),
    ...[NETWORKS.services, NETWORKS.loadBalancers, NETWORKS.external].map((network) =>
      route(network[family], { type: "local", dev: "lo" }),
    ),
  ]);
}

function outsideLines(): IpLines {
  return IP_FAMILIES.flatMap((family) => [
    address("eth0", `${outside.addresses[family]}/${prefix(family)}`),
    address("eth0", `${stranger.addresses[family]}/${prefix(family)}`),
    up("eth0"),
    route(ANYWHERE[family], { via: FABRIC_ADDRESSES.outside[family], src: outside.addresses[family] }),
  ]);
}

/** What every pod has as its gateway, on the node's side of its link (as Calico does it). */
const POD_GATEWAY = { IPv4: "169.254.1.1", IPv6: "fe80::1" } as const;

/** @param pids the processes of the pods' namespaces, by name */
function nodeLines(node: Host, pids: ReadonlyMap<string, number>): IpLines {
  const links = podsOf(node).flatMap((pod) => podLink(pod, pids.get(pod.name) ?? 0));
  return [up("eth0"), ...links, ...IP_FAMILIES.flatMap((family) => nodeRoutes(node, family))];
}

function podLink(pod: Host, pid: number): IpLines {
  const name = podInterface(pod);
  return [
    veth(name, "eth0", pid),
    up(name),
    // Of link scope, so that nothing is masqueraded with it.
    address(name, `${POD_GATEWAY.IPv4}/32`, "link"),
    address(name, `${POD_GATEWAY.IPv6}/64`),
  ];
}

function nodeRoutes(node: Host, family: IPFamily): IpLines {
  const own = node.addresses[family];
  const other = node === NODE_A ? NODE_B : NODE_A;
  const viaOther = { via: other.addresses[family], src: own };
  const prefix = family === "IPv4" ? 24 : 64;
  const second =
    node === NODE_A ? [address("eth0", `${SECOND_NODE_ADDRESS[family]}/${family === "IPv4" ? 32 : 128}`)] : [];
  // node-b has no proxy: what its pods send to frontends goes by way of node-a.
  const frontends = [NETWORKS.services, NETWORKS.loadBalancers, NETWORKS.external].map((network) => network[family]);
  return [
    address("eth0", `${own}/${prefix}`),
    ...second,
    ...podsOf(node).map((pod) => route(pod.addresses[family], { dev: podInterface(pod), src: own })),
    ...podsOf(other).map((pod) => route(pod.addresses[family], viaOther)),
    ...(node === NODE_B ? frontends.map((network) => route(network, viaOther)) : []),
    route(ANYWHERE[family], { via: FABRIC_ADDRESSES.nodes[family], src: own }),
  ];
}

function podLines(pod: Host): IpLines {
  return [
    up("eth0"),
    ...IP_FAMILIES.flatMap((family) => [
      address("eth0", `${pod.addresses[family]}/${family === "IPv4" ? 32 : 128}`),
      route(ANYWHERE[family], { via: POD_GATEWAY[family], dev: "eth0", onlink: true }),
    ]),
  ];
}
