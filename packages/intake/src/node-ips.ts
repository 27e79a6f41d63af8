import { familyOf, IP_FAMILIES, isUnspecified } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";

export type NodeIPs = Partial<Readonly<Record<IPFamily, string>>>;

export interface NodeIPSources {
  /** KubeProxyConfiguration.bindAddress. */
  readonly bindAddress: string;
  /** The own Node's addresses in the order of preference; empty where no Node is known. */
  readonly node: readonly string[];
  /** What the kernel would send from: used where there is no Node, as with manifests. */
  readonly kernel: NodeIPs;
}

/**
 * The node's address of each family: the bind address, else the Node object's first. The kernel's count where no Node
 * is known: a Node with addresses of one family only has no IP in the other one.
 */
export function nodeIPs({ bindAddress, node, kernel }: NodeIPSources): NodeIPs {
  const found: Partial<Record<IPFamily, string>> = {};
  const own = node.length > 0 ? node : Object.values(kernel);
  for (const family of IP_FAMILIES) {
    const bound = !isUnspecified(bindAddress) && familyOf(bindAddress) === family ? bindAddress : undefined;
    const ip = bound ?? own.find((address) => familyOf(address) === family);
    if (ip !== undefined) found[family] = ip;
  }
  return found;
}

/** The family that a node has to be able to serve. */
export interface PrimaryFamily {
  readonly family: IPFamily;
  /** What says so: the bind address, the own Node, or the kernel where no Node is known. */
  readonly source: keyof NodeIPSources;
  /** The address that it is the family of; absent: the node has none. */
  readonly address?: string;
}

/**
 * The family of the bind address; else that of the Node's first address, as upstream (detectNodeIPs). Without both,
 * where upstream takes IPv4, it is the family in which the kernel has an address, IPv4 before IPv6.
 */
export function primaryFamily({ bindAddress, node, kernel }: NodeIPSources): PrimaryFamily {
  const found = (source: keyof NodeIPSources, address: string) => ({ family: familyOf(address), source, address });
  if (!isUnspecified(bindAddress)) return found("bindAddress", bindAddress);
  const [first] = node;
  if (first !== undefined) return found("node", first);
  const own = kernel.IPv4 ?? kernel.IPv6;
  return own === undefined ? { family: "IPv4", source: "kernel" } : found("kernel", own);
}
