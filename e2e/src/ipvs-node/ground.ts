import { IP_FAMILIES, type IPFamily } from "@fairlead/base";
import { addressLine, NODE, namespaceLines, pairLines } from "../qemu/guest.ts";

/** A node with two uplinks, a client behind each, a client's pod, and pods with a second interface, as lines for sh. */

export type ByFamily = Readonly<Record<IPFamily, string>>;

export const CLIENT = "client";
/** All pods that are endpoints. */
export const PODS = "pods";

export const UPLINKS = {
  first: {
    device: "up0",
    node: { IPv4: "10.201.0.10", IPv6: "fd00:201::10" },
    router: { IPv4: "10.201.0.1", IPv6: "fd00:201::1" },
    client: { IPv4: "198.51.100.7", IPv6: "fd00:198::7" },
    metric: 100,
  },
  second: {
    device: "up1",
    node: { IPv4: "10.202.0.10", IPv6: "fd00:202::10" },
    router: { IPv4: "10.202.0.1", IPv6: "fd00:202::1" },
    client: { IPv4: "203.0.113.7", IPv6: "fd00:203::7" },
    metric: 2_000,
  },
} as const;
export type UplinkName = keyof typeof UPLINKS;

/** Clients outside send these to the node. */
const LOAD_BALANCERS = { IPv4: "192.0.2.0/24", IPv6: "fd00:192::/64" } as const satisfies ByFamily;

/** Of two pods on their first and on their second interface. */
export const ENDPOINTS = {
  eth0: { IPv4: ["10.144.1.5", "10.144.1.6"], IPv6: ["fd00:144:1::5", "fd00:144:1::6"] },
  net1: { IPv4: ["192.168.50.5", "192.168.50.6"], IPv6: ["fd00:50::5", "fd00:50::6"] },
} as const;

const ON_NODE = {
  eth0: { IPv4: "10.144.1.1", IPv6: "fd00:144:1::1" },
  net1: { IPv4: "192.168.50.1", IPv6: "fd00:50::1" },
} as const;

const TO_CLIENT = { IPv4: ["10.144.2.1", "10.144.2.2"], IPv6: ["fd00:144:2::1", "fd00:144:2::2"] } as const;

export function networkLines(): readonly string[] {
  const names = Object.keys(UPLINKS) as UplinkName[];
  return [
    ...namespaceLines([NODE, CLIENT, PODS, ...names]),
    // A lost connection is given up soon; strict filters would drop what comes by the second uplink.
    ...names.map((name) => `ip netns exec ${name} sysctl -q -w net.ipv4.tcp_syn_retries=1`),
    `ip netns exec ${NODE} sysctl -q -w net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0`,
    ...names.flatMap(uplinkLines),
    ...pairLines("to-client", CLIENT, "eth0"),
    ...IP_FAMILIES.flatMap((family) => {
      const [node, pod] = TO_CLIENT[family];
      return [
        addressLine(NODE, "to-client", node, family),
        addressLine(CLIENT, "eth0", pod, family),
        `ip -n ${CLIENT} route add default via ${node}`,
      ];
    }),
    ...podLines(),
  ];
}

function uplinkLines(name: UplinkName): readonly string[] {
  const { device, node, router, client, metric } = UPLINKS[name];
  return [
    ...pairLines(device, name, "e0"),
    ...IP_FAMILIES.flatMap((family) => {
      const from = `src ${client[family]}`;
      return [
        addressLine(NODE, device, node[family], family),
        `ip -n ${NODE} route add default via ${router[family]} dev ${device} metric ${metric}`,
        addressLine(name, "e0", router[family], family),
        `ip -n ${name} addr add ${client[family]} dev lo`,
        `ip -n ${name} route add ${node[family]} dev e0 ${from}`,
        `ip -n ${name} route add ${LOAD_BALANCERS[family]} via ${node[family]} ${from}`,
      ];
    }),
  ];
}

function podLines(): readonly string[] {
  return [
    ...(["eth0", "net1"] as const).flatMap((device) => [
      ...pairLines(`to-${device}`, PODS, device),
      ...IP_FAMILIES.flatMap((family) => [
        addressLine(NODE, `to-${device}`, ON_NODE[device][family], family),
        ...ENDPOINTS[device][family].map((one) => addressLine(PODS, device, one, family)),
      ]),
    ]),
    ...IP_FAMILIES.map((family) => `ip -n ${PODS} route add default via ${ON_NODE.eth0[family]}`),
  ];
}
