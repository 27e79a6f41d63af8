import type { IPFamily } from "@fairlead/core";

/** The IP pool of each family, and the block that a node has of it. */
export const podCIDRs: Readonly<Record<IPFamily, string>> = { IPv4: "10.144.0.0/16", IPv6: "fd00:144::/48" };

const blockLength: Readonly<Record<IPFamily, number>> = { IPv4: 24, IPv6: 120 };

/** Pods come from 10 on; no address of a block is the node's. */
export const inBlock: Readonly<Record<IPFamily, (node: number, host: number) => string>> = {
  IPv4: (node, host) => `10.144.${node}.${host}`,
  IPv6: (node, host) => `fd00:144::${node}:${host.toString(16)}`,
};

export const FIRST_POD = 10;

export function block(family: IPFamily, node: number): string {
  return `${inBlock[family](node, 0)}/${blockLength[family]}`;
}
