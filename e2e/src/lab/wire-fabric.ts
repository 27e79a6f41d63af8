import type { IPFamily } from "@fairlead/core";
import { networks, nodeA, nodeB, outside, secondNodeAddress, stranger } from "@fairlead/testkit";
import { address, anywhere, families, type IpLines, route, ruleForInterface, up, veth } from "./ip-lines.ts";
import { podsOf } from "./topology.ts";

/** The fabric's own addresses: on the nodes' bridge, towards the outside and towards the sink. */
export const fabricAddresses = {
  nodes: { IPv4: "10.201.0.1", IPv6: "fd00:201::1" },
  outside: { IPv4: "198.51.100.1", IPv6: "fd00:198:51::1" },
  strangers: { IPv4: "198.18.0.1", IPv6: "fd00:198:18::1" },
  sink: { IPv4: "100.64.0.1", IPv6: "fd00:64::1" },
} as const;

/** Routing tables for what comes from the nodes and from the sink. */
const FROM_NODES = 100;
const FROM_SINK = 200;

const sinkAddresses = { IPv4: "100.64.0.2", IPv6: "fd00:64::2" } as const;

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
    ...families.flatMap(fabricRoutes),
  ];
}

function fabricRoutes(family: IPFamily): IpLines {
  const on = (at: keyof typeof fabricAddresses) => `${fabricAddresses[at][family]}/${prefix(family)}`;
  const viaA = { via: nodeA.addresses[family] };
  const toPods = (table?: number) =>
    [nodeA, nodeB].flatMap((node) =>
      podsOf(node).map((pod) =>
        route(pod.addresses[family], { via: node.addresses[family], ...(table !== undefined && { table }) }),
      ),
    );
  const frontends = [networks.services, networks.loadBalancers, networks.external].map((network) => network[family]);
  return [
    address("br0", on("nodes")),
    address("outside", on("outside")),
    address("outside", on("strangers")),
    address("sink", on("sink")),
    // From outside: frontends are node-a's, as a load balancer or a router would have it.
    ...[...frontends, secondNodeAddress[family]].map((network) => route(network, viaA)),
    ...toPods(),
    route(anywhere[family], { type: "unreachable" }),
    // From the nodes: frontends go to the sink, for they would come back for ever.
    route(networks.nodes[family], { dev: "br0", table: FROM_NODES }),
    route(networks.outside[family], { dev: "outside", table: FROM_NODES }),
    route(networks.strangers[family], { dev: "outside", table: FROM_NODES }),
    route(secondNodeAddress[family], { ...viaA, table: FROM_NODES }),
    ...toPods(FROM_NODES),
    route(anywhere[family], { via: sinkAddresses[family], table: FROM_NODES }),
    // From the sink: everything back through the node that it came through, which tracks the connection.
    route(anywhere[family], { ...viaA, table: FROM_SINK }),
  ];
}

/** The same in both families, each in a batch of its own. */
export const fabricRules: IpLines = [ruleForInterface("br0", FROM_NODES), ruleForInterface("sink", FROM_SINK)];

/** The sink owns every frontend's address; its answers go back the way they came. */
export function sinkLines(): IpLines {
  return families.flatMap((family) => [
    address("eth0", `${sinkAddresses[family]}/${prefix(family)}`),
    up("eth0"),
    route(anywhere[family], { via: fabricAddresses.sink[family] }),
    ...[networks.services, networks.loadBalancers, networks.external].map((network) =>
      route(network[family], { type: "local", dev: "lo" }),
    ),
  ]);
}

export function outsideLines(): IpLines {
  return families.flatMap((family) => [
    address("eth0", `${outside.addresses[family]}/${prefix(family)}`),
    address("eth0", `${stranger.addresses[family]}/${prefix(family)}`),
    up("eth0"),
    route(anywhere[family], { via: fabricAddresses.outside[family], src: outside.addresses[family] }),
  ]);
}
