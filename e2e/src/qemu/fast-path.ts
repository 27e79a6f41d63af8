/** The guest: what the agent in it serves, and how it is configured. */

import { IP_FAMILIES, type IPFamily } from "@fairlead/base";
import type { KernelVersion } from "@fairlead/lab/qemu/kernel";
import { node } from "@fairlead/testkit";
import {
  addressLine,
  configText,
  manifestText,
  NODE,
  type NodeGuest,
  namespaceLines,
  type Protocol,
  pairLines,
  runInGuest,
  type Served,
  serviceOf,
  slicesOf,
} from "./guest.ts";

export const TARGETS = { tcp: 8080, udp: 5353, sctp: 9090 } as const;

interface ServedHere {
  /** The last part of its addresses. */
  readonly number: number;
  readonly ports: Readonly<Record<Protocol, number>>;
  readonly nodePort?: number;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Each has ports of its own, so that a listing of connections says which one is meant. */
export const SERVICES = {
  web: { number: 10, ports: { tcp: 80, udp: 53, sctp: 90 }, nodePort: 30080 },
  excepted: { number: 11, ports: { tcp: 81, udp: 54, sctp: 91 }, annotations: { "fairlead.dev/fast-path": "off" } },
  moving: { number: 12, ports: { tcp: 82, udp: 55, sctp: 92 } },
  own: { number: 13, ports: { tcp: 83, udp: 56, sctp: 93 } },
} as const satisfies Record<string, ServedHere>;
export type ServiceName = keyof typeof SERVICES;

export function clusterIP(name: ServiceName, family: IPFamily): string {
  const { number } = SERVICES[name];
  return { IPv4: `10.96.0.${number}`, IPv6: `fd00:10:96::${number}` }[family];
}

function served(name: ServiceName): Served {
  const { ports, nodePort, annotations }: ServedHere = SERVICES[name];
  return {
    clusterIP: { IPv4: clusterIP(name, "IPv4"), IPv6: clusterIP(name, "IPv6") },
    ports: { tcp: [ports.tcp, TARGETS.tcp], udp: [ports.udp, TARGETS.udp], sctp: [ports.sctp, TARGETS.sctp] },
    ...(nodePort !== undefined && { nodePort }),
    ...(annotations && { fields: { annotations } }),
  };
}

/** `fast` is the configuration with the fast path, `slow` the one without. */
export type Configuration = "slow" | "fast";

/** Of the service whose endpoints change. */
export const STATES = 3;

/** Counts what rules see of packets that the node forwards. */
export const SPY = "table inet spy { chain forward { type filter hook forward priority 0; counter; }; }";

/**
 * Runs a script in a guest, which has the configurations `slow`, `fast`, `auto` and `iptables`, and states of `moving`.
 */
export function runOnNode(version: KernelVersion, lines: readonly string[]): Promise<string> {
  return runInGuest(version, guest(), [`on_node nft '${SPY}'`, ...lines]);
}

function guest(): NodeGuest {
  const devices = [...Object.values(LINKS).map(({ device }) => device), "cali*"];
  const states = Array.from({ length: STATES }, (_, without) => [`moving-${without}`, movingText(without)]);
  const fastPath = (chosen: readonly string[] | "auto") => ({ nftables: { fastPath: { devices: chosen } } });
  return {
    modules: ["sctp", "xt_sctp", "nf_flow_table", "nf_flow_table_inet", ...NFT_MODULES, "bridge"],
    programs: ["setpriv"],
    network: networkLines(),
    servers: Object.entries(TARGETS).flatMap(([protocol, port]) =>
      [LINKS.server, LINKS.client].map(({ namespace, others: { IPv4, IPv6 } }) => ({
        ...{ namespace, protocol, port },
        addresses: [...IPv4, ...IPv6],
      })),
    ),
    files: {
      objects: objectsText(),
      ...Object.fromEntries(states),
      slow: configText(proxyOf("nftables")),
      fast: configText(proxyOf("nftables"), fastPath(devices)),
      auto: configText(proxyOf("nftables"), fastPath("auto")),
      iptables: configText(proxyOf("iptables")),
    },
    kubeProxy: proxyOf("nftables"),
  };
}

const NFT_MODULES = ["nft_reject_inet", "nft_fib_inet", "nft_flow_offload"];

/** The node and its services; those whose endpoints change begin without endpoints. */
function objectsText(): string {
  const addresses = IP_FAMILIES.map((family) => LINKS.outside.node[family]);
  const names: readonly ServiceName[] = ["web", "excepted", "moving", "own"];
  return manifestText([
    node(NODE, { addresses }),
    ...names.map((name) => serviceOf(name, served(name))),
    ...slicesOf("web", served("web"), (family) => serversOf(family).slice(0, 2)),
    ...slicesOf("excepted", served("excepted"), (family) => serversOf(family).slice(0, 2)),
    // Its clients are its only endpoint.
    ...slicesOf("own", served("own"), (family) => LINKS.client.others[family]),
  ]);
}

function movingText(without: number): string {
  return manifestText(
    slicesOf("moving", served("moving"), (family) => serversOf(family).filter((_, server) => server !== without)),
  );
}

function serversOf(family: IPFamily): readonly string[] {
  return LINKS.server.others[family];
}

/** What Fairlead's and kube-proxy's configuration have in common. */
function proxyOf(mode: "nftables" | "iptables"): object {
  return {
    mode,
    detectLocalMode: "ClusterCIDR",
    clusterCIDR: "10.144.0.0/16,fd00:10:144::/48",
    [mode]: { minSyncPeriod: "10ms", syncPeriod: "1s" },
  };
}

/**
 * A node with pods of clients and of servers, and a client outside of it, as lines for sh. Pods are connected in the
 * two ways that CNIs have: by a route to each, and by a bridge.
 */

export const CLIENT = "client";
const SERVER = "server";
export const OUTSIDE = "outside";

interface Link {
  readonly device: string;
  readonly way: keyof typeof WAYS;
  readonly namespace: string;
  readonly node: Readonly<Record<IPFamily, string>>;
  readonly others: Readonly<Record<IPFamily, readonly string[]>>;
}

export const LINKS = {
  client: {
    device: "to-client",
    way: "routes",
    namespace: CLIENT,
    node: { IPv4: "10.144.2.1", IPv6: "fd00:10:144:2::1" },
    others: { IPv4: ["10.144.2.2"], IPv6: ["fd00:10:144:2::2"] },
  },
  server: {
    device: "to-server",
    way: "bridge",
    namespace: SERVER,
    node: { IPv4: "10.144.1.1", IPv6: "fd00:10:144:1::1" },
    others: {
      IPv4: ["10.144.1.2", "10.144.1.3", "10.144.1.4"],
      IPv6: ["fd00:10:144:1::2", "fd00:10:144:1::3", "fd00:10:144:1::4"],
    },
  },
  outside: {
    device: "uplink",
    way: "uplink",
    namespace: OUTSIDE,
    node: { IPv4: "172.30.0.1", IPv6: "fd00:172:30::1" },
    others: { IPv4: ["172.30.0.9"], IPv6: ["fd00:172:30::9"] },
  },
} as const satisfies Record<string, Link>;

const BRIDGE = "cni0";

const WAYS = {
  routes: ({ device, node, others }: Link) =>
    IP_FAMILIES.flatMap((family) => [
      addressLine(NODE, device, node[family], family, HOST[family]),
      ...others[family].map((address) => `ip -n ${NODE} route add ${address} dev ${device}`),
    ]),
  bridge: ({ device, node }: Link) => [
    ...bridgeLines(BRIDGE, node),
    `ip -n ${NODE} link set ${device} master ${BRIDGE}`,
  ],
  uplink: ({ device, node, others }: Link) =>
    IP_FAMILIES.flatMap((family) => [
      addressLine(NODE, device, node[family], family),
      `ip -n ${NODE} route add default via ${others[family][0]}`,
    ]),
};

const HOST = { IPv4: 32, IPv6: 128 } as const;

function networkLines(): readonly string[] {
  return [
    ...namespaceLines([NODE, CLIENT, SERVER, OUTSIDE]),
    ...Object.values(LINKS).flatMap(linkLines),
    ...dockerLines(),
  ];
}

function linkLines(link: Link): readonly string[] {
  const { device, way, namespace, node, others } = link;
  return [
    ...pairLines(device, namespace, "eth0"),
    ...WAYS[way](link),
    ...IP_FAMILIES.flatMap((family) => [
      ...others[family].map((address) => addressLine(namespace, "eth0", address, family)),
      `ip -n ${namespace} route add default via ${node[family]}`,
    ]),
  ];
}

/** A network of containers that are not the cluster's. */
function dockerLines(): readonly string[] {
  return [
    ...bridgeLines("docker0", { IPv4: "172.17.0.1", IPv6: "fd00:172:17::1" }),
    `ip -n ${NODE} link add docker-1 type veth peer name docker-2`,
    `ip -n ${NODE} link set docker-1 master docker0 up`,
  ];
}

function bridgeLines(name: string, addresses: Readonly<Record<IPFamily, string>>): readonly string[] {
  return [
    `ip -n ${NODE} link add ${name} type bridge`,
    `ip -n ${NODE} link set ${name} up`,
    ...IP_FAMILIES.map((family) => addressLine(NODE, name, addresses[family], family)),
  ];
}
