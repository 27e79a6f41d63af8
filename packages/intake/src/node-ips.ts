import type { IPFamily } from "@fairlead/core";
import { allFamilies, familyOf, isUnspecified } from "./families.ts";

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
 * The node's address of each family: the bind address, else the Node object's first. The kernel's count where no Node is
 * known: a Node with addresses of one family only has no IP in the other one.
 */
export function nodeIPs({ bindAddress, node, kernel }: NodeIPSources): NodeIPs {
  const found: Partial<Record<IPFamily, string>> = {};
  const own = node.length > 0 ? node : Object.values(kernel);
  for (const family of allFamilies) {
    const bound = !isUnspecified(bindAddress) && familyOf(bindAddress) === family ? bindAddress : undefined;
    const ip = bound ?? own.find((address) => familyOf(address) === family);
    if (ip !== undefined) found[family] = ip;
  }
  return found;
}
