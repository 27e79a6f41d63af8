import type { IPFamily } from "@fairlead/core";
import { ANYWHERE, address, applyLines, type IpLines, route, up, veth } from "../../wire.ts";
import {
  type CniFlavor,
  type CniGround,
  type CniNode,
  masqueradeOutgoing,
  nodeSubnets,
  type PodAddresses,
  type PodNetwork,
  type PodToAttach,
  routeToOthers,
} from "../flavor.ts";

const subnets = nodeSubnets("10.142", "fd00:142::");

/** A routed link for each pod, routes between the nodes: the CNI plugins ptp and host-local. */
export const flavor: CniFlavor = {
  name: "ptp",
  programs: [],
  podCIDRs: subnets.podCIDRs,
  ownLoadBalancer: false,
  mtu: 1500,
  install,
};

/** The same on every link. */
const GATEWAY: Readonly<Record<IPFamily, string>> = { IPv4: "169.254.142.1", IPv6: "fe80::142:1" };
async function install({ nodes, families }: CniGround): Promise<PodNetwork> {
  await Promise.all(nodes.map((node) => setUpNode(node, nodes, families)));
  return {
    attach: (pod) => attach(pod, families),
    detach: async ({ name, node }) => {
      await node.runner.run(["ip", "link", "delete", hostSide(name)]);
    },
    // Routes are there at once.
    ready: async () => {},
    state: async () => ({}),
    dispose: async () => {},
  };
}

async function setUpNode(node: CniNode, nodes: readonly CniNode[], families: readonly IPFamily[]): Promise<void> {
  const others = nodes.filter((other) => other !== node);
  for (const family of families) {
    await routeToOthers(node, others, family, subnets);
    await masqueradeOutgoing(node.runner, family, flavor);
  }
}

async function attach({ name, node, index, namespace, runner }: PodToAttach, families: readonly IPFamily[]) {
  const own = families.map((family) => [family, subnets.pod(family, node.index, index)] as const);
  await applyLines(node.runner, [
    veth(hostSide(name), "eth0", namespace.pid),
    up(hostSide(name)),
    ...own.flatMap(([family, pod]) => nodeSide(hostSide(name), family, pod, node.addresses[family])),
  ]);
  await applyLines(runner, [
    up("eth0"),
    ...own.flatMap(([family, pod]) => [
      address("eth0", `${pod}/${family === "IPv4" ? 32 : 128}`),
      route(ANYWHERE[family], { via: GATEWAY[family], dev: "eth0", onlink: true }),
    ]),
  ]);
  return Object.fromEntries(own) satisfies PodAddresses;
}

function nodeSide(link: string, family: IPFamily, pod: string, src: string | undefined): IpLines {
  return [
    // Of link scope, so that nothing is masqueraded with it.
    family === "IPv4" ? address(link, `${GATEWAY.IPv4}/32`, "link") : address(link, `${GATEWAY.IPv6}/64`),
    route(pod, { dev: link, ...(src !== undefined && { src }) }),
  ];
}

function hostSide(pod: string): string {
  return `ptp-${pod}`;
}
