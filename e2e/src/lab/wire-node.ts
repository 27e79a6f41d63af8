import type { IPFamily } from "@fairlead/core";
import { type Host, networks, nodeA, nodeB, secondNodeAddress } from "@fairlead/testkit";
import { address, anywhere, families, type IpLines, route, up, veth } from "./ip-lines.ts";
import { podInterface, podsOf } from "./topology.ts";
import { fabricAddresses } from "./wire-fabric.ts";

/** What every pod has as its gateway, on the node's side of its link (as Calico does it). */
const podGateway = { IPv4: "169.254.1.1", IPv6: "fe80::1" } as const;

/** @param pids the processes of the pods' namespaces, by name */
export function nodeLines(node: Host, pids: ReadonlyMap<string, number>): IpLines {
  const links = podsOf(node).flatMap((pod) => podLink(pod, pids.get(pod.name) ?? 0));
  return [up("eth0"), ...links, ...families.flatMap((family) => nodeRoutes(node, family))];
}

function podLink(pod: Host, pid: number): IpLines {
  const name = podInterface(pod);
  return [
    veth(name, "eth0", pid),
    up(name),
    // Of link scope, so that nothing is masqueraded with it.
    address(name, `${podGateway.IPv4}/32`, "link"),
    address(name, `${podGateway.IPv6}/64`),
  ];
}

function nodeRoutes(node: Host, family: IPFamily): IpLines {
  const own = node.addresses[family];
  const other = node === nodeA ? nodeB : nodeA;
  const viaOther = { via: other.addresses[family], src: own };
  const prefix = family === "IPv4" ? 24 : 64;
  const second =
    node === nodeA ? [address("eth0", `${secondNodeAddress[family]}/${family === "IPv4" ? 32 : 128}`)] : [];
  // node-b has no proxy: what its pods send to frontends goes by way of node-a.
  const frontends = [networks.services, networks.loadBalancers, networks.external].map((network) => network[family]);
  return [
    address("eth0", `${own}/${prefix}`),
    ...second,
    ...podsOf(node).map((pod) => route(pod.addresses[family], { dev: podInterface(pod), src: own })),
    ...podsOf(other).map((pod) => route(pod.addresses[family], viaOther)),
    ...(node === nodeB ? frontends.map((network) => route(network, viaOther)) : []),
    route(anywhere[family], { via: fabricAddresses.nodes[family], src: own }),
  ];
}

export function podLines(pod: Host): IpLines {
  return [
    up("eth0"),
    ...families.flatMap((family) => [
      address("eth0", `${pod.addresses[family]}/${family === "IPv4" ? 32 : 128}`),
      route(anywhere[family], { via: podGateway[family], dev: "eth0", onlink: true }),
    ]),
  ];
}
