import { IP_FAMILIES } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { NETWORKS, NODE_A, NODE_B, outside, SECOND_NODE_ADDRESS, stranger } from "@fairlead/testkit";
import { ANYWHERE, address, type IpLines, route, ruleForInterface, up, veth } from "../wire/ip-lines.ts";
import { podsOf } from "./topology.ts";

/** The fabric's own addresses: on the nodes' bridge, toward the outside and toward the sink. */
export const FABRIC_ADDRESSES = {
  nodes: { IPv4: "10.201.0.1", IPv6: "fd00:201::1" },
  outside: { IPv4: "198.51.100.1", IPv6: "fd00:198:51::1" },
  strangers: { IPv4: "198.18.0.1", IPv6: "fd00:198:18::1" },
  sink: { IPv4: "100.64.0.1", IPv6: "fd00:64::1" },
} as const;

/** Routing tables for what comes from the nodes and from the sink. */
const FROM_NODES = 100;
const FROM_SINK = 200;

const SINK_ADDRESSES = { IPv4: "100.64.0.2", IPv6: "fd00:64::2" } as const;

const prefix = (family: IPFamily) => (family === "IPv4" ? 24 : 64);

/** @param pids the processes of the namespaces at the other ends */
export function fabricLines(pids: Readonly<Record<"node-a" | "node-b" | "outside" | "sink", number>>): IpLines {
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

/** The same in both families, each in a batch of its own. */
export const fabricRules: IpLines = [ruleForInterface("br0", FROM_NODES), ruleForInterface("sink", FROM_SINK)];

/** The sink owns every frontend's address; its answers go back the way they came. */
export function sinkLines(): IpLines {
  return IP_FAMILIES.flatMap((family) => [
    address("eth0", `${SINK_ADDRESSES[family]}/${prefix(family)}`),
    up("eth0"),
    route(ANYWHERE[family], { via: FABRIC_ADDRESSES.sink[family] }),
    ...[NETWORKS.services, NETWORKS.loadBalancers, NETWORKS.external].map((network) =>
      route(network[family], { type: "local", dev: "lo" }),
    ),
  ]);
}

export function outsideLines(): IpLines {
  return IP_FAMILIES.flatMap((family) => [
    address("eth0", `${outside.addresses[family]}/${prefix(family)}`),
    address("eth0", `${stranger.addresses[family]}/${prefix(family)}`),
    up("eth0"),
    route(ANYWHERE[family], { via: FABRIC_ADDRESSES.outside[family], src: outside.addresses[family] }),
  ]);
}
