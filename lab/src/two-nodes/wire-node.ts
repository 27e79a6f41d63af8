import { IP_FAMILIES } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { type Host, NETWORKS, NODE_A, NODE_B, SECOND_NODE_ADDRESS } from "@fairlead/testkit";
import { ANYWHERE, address, type IpLines, route, up, veth } from "../wire/ip-lines.ts";
import { podInterface, podsOf } from "./topology.ts";
import { FABRIC_ADDRESSES } from "./wire-fabric.ts";

/** What every pod has as its gateway, on the node's side of its link (as Calico does it). */
const POD_GATEWAY = { IPv4: "169.254.1.1", IPv6: "fe80::1" } as const;

/** @param pids the processes of the pods' namespaces, by name */
export function nodeLines(node: Host, pids: ReadonlyMap<string, number>): IpLines {
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

export function podLines(pod: Host): IpLines {
  return [
    up("eth0"),
    ...IP_FAMILIES.flatMap((family) => [
      address("eth0", `${pod.addresses[family]}/${family === "IPv4" ? 32 : 128}`),
      route(ANYWHERE[family], { via: POD_GATEWAY[family], dev: "eth0", onlink: true }),
    ]),
  ];
}
