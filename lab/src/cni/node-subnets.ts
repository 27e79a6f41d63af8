import type { IPFamily } from "@fairlead/core";

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
