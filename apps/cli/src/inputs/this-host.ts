import { hostname } from "node:os";
import type { NodeState } from "@fairlead/core";
import { CommandFailure } from "../frame/errors.ts";

/**
 * A node that is named is not taken for this host, whose kernel would answer for it.
 *
 * @param live the addresses that this host has
 * @param node undefined: nothing is known of it
 * @throws CommandFailure where they have no address in common
 */
export function demandThisHost(
  { node: name }: { readonly node: string | undefined },
  live: readonly string[],
  node: Pick<NodeState, "addresses"> | undefined,
): void {
  if (name === undefined || node === undefined || node.addresses.length === 0) return;
  if (name.toLowerCase() === hostname().toLowerCase()) return;
  const own = new Set(live);
  if (node.addresses.some((address) => own.has(address))) return;
  throw new CommandFailure(
    `--node=${name}: this host is not that Node (it has none of ${node.addresses.join(", ")}); look at it with --on ${name}`,
  );
}
