import type { IPFamily } from "@fairlead/core";
import { nodeSubnets } from "../node-subnets.ts";

/** Each node has a subnet of the pods' addresses, a logical switch, whose gateway is the router. */
export const subnets = nodeSubnets("10.244", "fd00:244::");

/** Between the router and the nodes. */
export const JOIN_CIDRS: Readonly<Record<IPFamily, string>> = { IPv4: "100.64.0.0/16", IPv6: "fd00:100:64::/112" };

export const JOIN_LENGTH: Readonly<Record<IPFamily, number>> = { IPv4: 16, IPv6: 112 };

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

/**
 * Where the tunnels end: a network of their own on the nodes' second interface. Geneve over IPv4 carries both families.
 */
export function tunnelAddress(node: number): string {
  return `172.30.1.${10 + node}`;
}
export const TUNNEL_LENGTH = 24;

/**
 * One for everything that has a port; `part` says what it is: 0 the tunnel, 1 the node's port, 2 the router's, 3 a
 * pod's.
 */
export function mac(part: number, node: number, host = 0): string {
  return ["0a", "58", "f4", part, node, host]
    .map((byte) => (typeof byte === "string" ? byte : byte.toString(16).padStart(2, "0")))
    .join(":");
}
