import type { FilterEndpoint } from "@fairlead/core";

/**
 * Addresses that decide nothing, canonical. With the names of the nodes that have an address, the endpoints there that
 * run on one of these: a node that claims another network's address decides nothing about what runs elsewhere. `any`:
 * all endpoints there.
 */
export type NeutralAddresses = ReadonlyMap<string, ReadonlySet<string> | "any">;

/** Whether an endpoint is at the address of its own node, or at one that decides nothing wherever it runs. */
export function isNeutral(neutral: NeutralAddresses | undefined, { address, nodeName }: FilterEndpoint): boolean {
  const nodes = neutral?.get(address);
  if (nodes === undefined) return false;
  return nodes === "any" || (nodeName !== undefined && nodes.has(nodeName));
}
