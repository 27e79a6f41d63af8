import type { IPFamily } from "@fairlead/core";

/** The network in flannel's net-conf.json, and the subnet that each node leases of it. */
export const podCIDRs: Readonly<Record<IPFamily, string>> = { IPv4: "10.42.0.0/16", IPv6: "fd00:42::/48" };

export const prefixLength: Readonly<Record<IPFamily, number>> = { IPv4: 24, IPv6: 112 };

/** The addresses of a node's subnet: 0 is its end of the tunnel, 1 the bridge, pods come from 10 on. */
export const inSubnet: Readonly<Record<IPFamily, (node: number, host: number) => string>> = {
  IPv4: (node, host) => `10.42.${node}.${host}`,
  IPv6: (node, host) => `fd00:42::${node}:${host.toString(16)}`,
};

export const FIRST_POD = 10;

export function subnet(family: IPFamily, node: number): string {
  return `${inSubnet[family](node, 0)}/${prefixLength[family]}`;
}
