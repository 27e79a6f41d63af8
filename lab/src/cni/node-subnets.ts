/** Subnets of nodes, the routes between them, and what leaves the cluster. */

import type { IPFamily } from "@fairlead/core";
import type { Runner } from "@fairlead/kernel";
import { applyLines, route } from "../wire.ts";
import type { CniFlavor, CniNode } from "./flavor.ts";

/** The addresses of a pod network in which every node has a subnet of its own, which follows from the node's number. */
export interface NodeSubnets {
  /** In the whole cluster: a /16 and a /48. */
  readonly podCIDRs: Readonly<Record<IPFamily, string>>;
  /** The prefix length of a node's subnet. */
  readonly length: Readonly<Record<IPFamily, number>>;
  /** As a CIDR. */
  subnet(family: IPFamily, node: number): string;
  /**
   * The address of a host in a node's subnet: 0 is the subnet itself, 1 its gateway if it has one, pods come from 11
   * on.
   */
  address(family: IPFamily, node: number, host: number): string;
  /** @param index of the pod on its node, from 1 */
  pod(family: IPFamily, node: number, index: number): string;
}

export const FIRST_POD = 10;

/**
 * @param ipv4 the first two numbers, `10.143`
 * @param ipv6 the first 48 bits with `::` after them, `fd00:143::`
 * @param ipv6Length of a node's subnet
 */
export function nodeSubnets(ipv4: string, ipv6: string, ipv6Length = 112): NodeSubnets {
  const length = { IPv4: 24, IPv6: ipv6Length };
  const inSubnet: Readonly<Record<IPFamily, (node: number, host: number) => string>> = {
    IPv4: (node, host) => `${ipv4}.${node}.${host}`,
    IPv6: (node, host) => `${ipv6}${node}:${host.toString(16)}`,
  };
  return {
    podCIDRs: { IPv4: `${ipv4}.0.0/16`, IPv6: `${ipv6}/48` },
    length,
    subnet: (family, node) => `${inSubnet[family](node, 0)}/${length[family]}`,
    address: (family, node, host) => inSubnet[family](node, host),
    pod: (family, node, index) => inSubnet[family](node, FIRST_POD + index),
  };
}

/** Nodes on one link: every other node is the gateway to its subnet, and nothing is wrapped. */
export async function routeToOthers(
  node: CniNode,
  others: readonly CniNode[],
  family: IPFamily,
  { subnet }: NodeSubnets,
): Promise<void> {
  await applyLines(
    node.runner,
    others.flatMap(({ index, addresses }) => {
      const via = addresses[family];
      return via === undefined ? [] : [route(subnet(family, index), { via, dev: "eth0" })];
    }),
  );
}

const TOOLS: Readonly<Record<IPFamily, string>> = { IPv4: "iptables", IPv6: "ip6tables" };
const MULTICAST: Readonly<Record<IPFamily, string>> = { IPv4: "224.0.0.0/4", IPv6: "ff00::/8" };

/**
 * What most CNI plugins do on a node: packets of pods to anywhere else get the node's address. A chain of the flavor's
 * own, alongside the proxy's.
 */
export async function masqueradeOutgoing(
  runner: Runner,
  family: IPFamily,
  { name, podCIDRs }: Pick<CniFlavor, "name" | "podCIDRs">,
): Promise<void> {
  const pods = podCIDRs[family];
  if (pods === undefined) return;
  const chain = `CNI-${name.toUpperCase()}`;
  await runner.run([`${TOOLS[family]}-restore`, "--noflush"], {
    input: [
      "*nat",
      `:${chain} - [0:0]`,
      `-A ${chain} -d ${pods} -j RETURN`,
      `-A ${chain} ! -d ${MULTICAST[family]} -j MASQUERADE`,
      `-A POSTROUTING -s ${pods} -j ${chain}`,
      "COMMIT\n",
    ].join("\n"),
  });
}
