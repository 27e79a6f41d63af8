import { type ConntrackFlow as Flow, type FrontendLookup, releasedFlows, staleFlows } from "@fairlead/core";
import type { Conntrack, ConntrackFlow } from "@fairlead/kernel";
import type { CleaningNeeds } from "./queue.ts";

/** Entries looked at in one go. */
const batchSize = 2_000;

/** An entry in core's words, with the one that it stands for. */
interface Listed extends Flow {
  readonly entry: ConntrackFlow;
}

/**
 * Deletes the conntrack entries of one family that keep clients on endpoints that are gone, or with us where another
 * network has taken over.
 *
 * @returns how many different flows were deleted
 * @throws CommandError when conntrack is missing, not permitted or fails
 */
export async function cleanConntrack(
  conntrack: Conntrack,
  lookup: FrontendLookup,
  needs: CleaningNeeds,
): Promise<number> {
  const stale = new Set<ConntrackFlow>();
  for (const protocol of needs.protocols) {
    for await (const batch of batches(conntrack.list(lookup.family, protocol))) {
      for (const { entry } of staleFlows(lookup, batch)) stale.add(entry);
      for (const { entry } of releasedFlows(needs.released, batch)) stale.add(entry);
    }
  }
  if (stale.size > 0) await conntrack.delete(stale);
  return stale.size;
}

async function* batches(entries: AsyncIterable<ConntrackFlow>): AsyncGenerator<readonly Listed[], void, void> {
  let batch: Listed[] = [];
  for await (const entry of entries) {
    batch.push({ ...entry, protocol: entry.protocol.toLowerCase(), entry });
    if (batch.length < batchSize) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}
