import type { IPFamily } from "@fairlead/core";
import type { PrimaryFamily } from "@fairlead/intake";

const OWNERS = { bindAddress: "of bindAddress", node: "of the Node's first address", kernel: "of this node" } as const;

/**
 * Why a node with this primary family cannot be served; undefined: it can. The other family may be left out.
 *
 * @param unserved the families that this node cannot do, and why
 */
export function whyUnserved(
  { family, source, address = "none is known" }: PrimaryFamily,
  unserved: ReadonlyMap<IPFamily, string>,
): string | undefined {
  const reason = unserved.get(family);
  if (reason === undefined) return undefined;
  return `${family}, the primary family (${OWNERS[source]}: ${address}), cannot be served: ${reason}`;
}
