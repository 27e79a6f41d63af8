import type { IPFamily } from "@fairlead/core";

/**
 * The addresses of a cluster of namespaces. Several clusters use the same ones: each has networks of its own. None of
 * them is routed anywhere on the machine.
 */
export const SERVICE_CIDRS: Readonly<Record<IPFamily, string>> = { IPv4: "10.96.0.0/12", IPv6: "fd00:10:96::/108" };

export const PREFIX_LENGTH: Readonly<Record<IPFamily, number>> = { IPv4: 24, IPv6: 64 };

/** Of pods that a cluster has services of, and that are in none of its networks. */
export const ELSEWHERE_CIDRS: Readonly<Record<IPFamily, string>> = { IPv4: "10.251.0.0/16", IPv6: "fd00:251::/48" };

/** Of the bridge that the nodes are on. */
export const FABRIC_NETWORK: Readonly<Record<IPFamily, string>> = { IPv4: "172.30.0.0/24", IPv6: "fd00:30::/64" };

/** The fabric's own; the API server is there too, unless the cluster is in a guest. */
export const FABRIC_ADDRESS: Readonly<Record<IPFamily, string>> = { IPv4: "172.30.0.1", IPv6: "fd00:30::1" };

/** @param index from 1 */
export const nodeAddress: Readonly<Record<IPFamily, (index: number) => string>> = {
  IPv4: (index) => `172.30.0.${10 + index}`,
  IPv6: (index) => `fd00:30::${10 + index}`,
};

/** The fabric's end of the link to the outside. */
export const GATEWAY_ADDRESS: Readonly<Record<IPFamily, string>> = { IPv4: "198.51.100.1", IPv6: "fd00:198:51::1" };

/** Two that are outside, so that source ranges can let in one of them. */
export const OUTSIDE_ADDRESS: Readonly<Record<IPFamily, string>> = { IPv4: "198.51.100.7", IPv6: "fd00:198:51::7" };
export const STRANGER_ADDRESS: Readonly<Record<IPFamily, string>> = { IPv4: "198.51.100.8", IPv6: "fd00:198:51::8" };

/** Addresses of nobody that the outside routes to a node: for externalIPs and load balancers. */
export const gateNetwork: Readonly<Record<IPFamily, (node: number) => string>> = {
  IPv4: (node) => `198.18.${node}.0/24`,
  IPv6: (node) => `fd00:18::${node}:0/112`,
};

export const gateAddress: Readonly<Record<IPFamily, (node: number, count: number) => string>> = {
  IPv4: (node, count) => `198.18.${node}.${1 + (count % 250)}`,
  IPv6: (node, count) => `fd00:18::${node}:${(1 + count).toString(16)}`,
};

export const MAX_NODES = 8;

/** `node-a` … */
export function nodeName(index: number): string {
  return `node-${"abcdefgh"[index - 1] ?? index}`;
}

/** The addresses that a cluster of these families has. */
export function familiesOnly(
  families: readonly IPFamily[],
  addresses: Readonly<Record<IPFamily, string>>,
): Readonly<Partial<Record<IPFamily, string>>> {
  return Object.fromEntries(families.map((family) => [family, addresses[family]]));
}

/** Counts up, so that no two services of a cluster meet at one address. */
export function gateCounter(): () => number {
  let count = 0;
  return () => count++;
}
