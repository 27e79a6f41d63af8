import {
  type ConntrackFlow as Flow,
  type FrontendLookup,
  orphans,
  type Protocol,
  releasedFlows,
  staleFlows,
} from "@fairlead/core";
import type { Conntrack, ConntrackFlow } from "@fairlead/kernel";
import type { CleaningNeeds } from "./queue.ts";

/** An entry in core's words, with the one that it stands for. */
interface Listed extends Flow {
  readonly entry: ConntrackFlow;
}

/**
 * Deletes the conntrack entries of one family that keep clients on endpoints that are gone, or with us where another
 * network has taken over.
 *
 * @param nodeAddresses empty: they are not known
 * @returns how many were deleted of each protocol
 * @throws CommandError or NetlinkError when conntrack is missing, not permitted or fails
 */
export async function cleanConntrack(
  conntrack: Conntrack,
  lookup: FrontendLookup,
  needs: CleaningNeeds,
  nodeAddresses: readonly string[] = [],
): Promise<ReadonlyMap<Protocol, number>> {
  const isOrphan = orphans(lookup, needs.gone);
  const known = nodeAddresses.length === 0 ? {} : { nodeAddresses: new Set(nodeAddresses) };
  const choose = (entries: readonly ConntrackFlow[]): ReadonlySet<ConntrackFlow> => {
    const listed: readonly Listed[] = entries.map((entry) => ({
      ...entry,
      protocol: entry.protocol.toLowerCase(),
      entry,
    }));
    const released = releasedFlows(needs.released, listed);
    const stale = [...staleFlows(lookup, listed, known), ...released, ...listed.filter(isOrphan)];
    return new Set(stale.map(({ entry }) => entry));
  };
  const deleted = new Map<Protocol, number>();
  for (const protocol of needs.protocols) {
    deleted.set(protocol, await conntrack.sweep(lookup.family, protocol, choose));
  }
  return deleted;
}
