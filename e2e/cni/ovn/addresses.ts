import type { IPFamily } from "@fairlead/core";

/** The pods' addresses in the whole cluster; each node has a subnet of them, a logical switch. */
export const podCIDRs: Readonly<Record<IPFamily, string>> = { IPv4: "10.244.0.0/16", IPv6: "fd00:244::/48" };

/** Between the router and the nodes. */
export const joinCIDRs: Readonly<Record<IPFamily, string>> = { IPv4: "100.64.0.0/16", IPv6: "fd00:100:64::/112" };

export const subnetLength: Readonly<Record<IPFamily, number>> = { IPv4: 24, IPv6: 112 };
export const joinLength: Readonly<Record<IPFamily, number>> = { IPv4: 16, IPv6: 112 };

/** The addresses of a node's subnet: 1 is the router, pods come from 10 on. */
export const inSubnet: Readonly<Record<IPFamily, (node: number, host: number) => string>> = {
  IPv4: (node, host) => `10.244.${node}.${host}`,
  IPv6: (node, host) => `fd00:244::${node}:${host.toString(16)}`,
};

export const FIRST_POD = 10;

/** 1 is the router, the nodes follow. */
const inJoin: Readonly<Record<IPFamily, (host: number) => string>> = {
  IPv4: (host) => `100.64.0.${host}`,
  IPv6: (host) => `fd00:100:64::${host.toString(16)}`,
};

export function joinRouter(family: IPFamily): string {
  return inJoin[family](1);
}

export function joinNode(family: IPFamily, node: number): string {
  return inJoin[family](1 + node);
}

export function subnet(family: IPFamily, node: number): string {
  return `${inSubnet[family](node, 0)}/${subnetLength[family]}`;
}

/** Where the tunnels end: a network of their own on the nodes' second interface. Geneve over IPv4 carries both families. */
export function tunnelAddress(node: number): string {
  return `172.30.1.${10 + node}`;
}
export const tunnelLength = 24;

/** One for everything that has a port; `part` says what it is: 0 the tunnel, 1 the node's port, 2 the router's, 3 a pod's. */
export function mac(part: number, node: number, host = 0): string {
  return ["0a", "58", "f4", part, node, host]
    .map((byte) => (typeof byte === "string" ? byte : byte.toString(16).padStart(2, "0")))
    .join(":");
}
