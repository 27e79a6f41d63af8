import { IP_FAMILIES, type IPFamily } from "@fairlead/base";

/** A node with pods of clients and of servers, and a client outside of it, as lines for sh. */

export const NODE = "node";
export const CLIENT = "client";
const SERVER = "server";
export const OUTSIDE = "outside";

interface Link {
  readonly device: string;
  readonly namespace: string;
  /** The node's addresses. */
  readonly node: Readonly<Record<IPFamily, string>>;
  readonly others: Readonly<Record<IPFamily, readonly string[]>>;
}

export const LINKS = {
  client: {
    device: "to-client",
    namespace: CLIENT,
    node: { IPv4: "10.144.2.1", IPv6: "fd00:10:144:2::1" },
    others: { IPv4: ["10.144.2.2"], IPv6: ["fd00:10:144:2::2"] },
  },
  server: {
    device: "to-server",
    namespace: SERVER,
    node: { IPv4: "10.144.1.1", IPv6: "fd00:10:144:1::1" },
    others: {
      IPv4: ["10.144.1.2", "10.144.1.3", "10.144.1.4"],
      IPv6: ["fd00:10:144:1::2", "fd00:10:144:1::3", "fd00:10:144:1::4"],
    },
  },
  outside: {
    device: "uplink",
    namespace: OUTSIDE,
    node: { IPv4: "172.30.0.1", IPv6: "fd00:172:30::1" },
    others: { IPv4: ["172.30.0.9"], IPv6: ["fd00:172:30::9"] },
  },
} as const satisfies Record<string, Link>;

const PREFIX = { IPv4: "24", IPv6: "64" } as const;

export function networkLines(): readonly string[] {
  return [
    ...[NODE, CLIENT, SERVER, OUTSIDE].flatMap((name) => [`ip netns add ${name}`, `ip -n ${name} link set lo up`]),
    ...Object.values(LINKS).flatMap(linkLines),
    `ip netns exec ${NODE} sysctl -q -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1`,
  ];
}

function linkLines({ device, namespace, node, others }: Link): readonly string[] {
  return [
    `ip -n ${NODE} link add ${device} type veth peer name eth0 netns ${namespace}`,
    `ip -n ${NODE} link set ${device} up`,
    `ip -n ${namespace} link set eth0 up`,
    ...IP_FAMILIES.flatMap((family) => [
      addressLine(NODE, device, node[family], family),
      ...others[family].map((address) => addressLine(namespace, "eth0", address, family)),
      `ip -n ${namespace} route add default via ${node[family]}`,
    ]),
  ];
}

function addressLine(namespace: string, device: string, address: string, family: IPFamily): string {
  const usableAtOnce = family === "IPv6" ? " nodad" : "";
  return `ip -n ${namespace} addr add ${address}/${PREFIX[family]} dev ${device}${usableAtOnce}`;
}
