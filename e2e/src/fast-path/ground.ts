import { IP_FAMILIES, type IPFamily } from "@fairlead/base";
import { addressLine, NODE, namespaceLines, pairLines } from "../qemu/guest.ts";

/**
 * A node with pods of clients and of servers, and a client outside of it, as lines for sh. Pods are connected in the
 * two ways that CNIs have: by a route to each, and by a bridge.
 */

export const CLIENT = "client";
const SERVER = "server";
export const OUTSIDE = "outside";

interface Link {
  readonly device: string;
  /** How the node reaches the others. */
  readonly way: keyof typeof WAYS;
  readonly namespace: string;
  /** The node's addresses. */
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

/** The node's side of a link. */
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

export function networkLines(): readonly string[] {
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
