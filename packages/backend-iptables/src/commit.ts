import { type Command, type CommandSource, payloadText, restoreLines, type Table } from "@fairlead/netfilter";
import { batches } from "./batches.ts";
import type { Settled } from "./options.ts";
import type { ChainRules } from "./plan/chain-rules.ts";
import { deleteChains, fillChains, inDeletionOrder } from "./plan/commands.ts";
import type { IptablesPort } from "./port.ts";

/**
 * What a payload of the nft variant may hold: the kernel checks every path through the chains of a transaction, so its
 * cost grows with the square of their number.
 */
export const BATCH = { endpointChains: 500, serviceChains: 250, staleChains: 500 } as const;

/** Rules that payloads have written, by table. */
export type Written = Map<Table, number>;

/** Everything that one sync writes. The iterables are read once, in this order. */
export interface Work {
  /** Chains that refer to none of the others, and the one that they all jump to first among them. */
  readonly endpointChains: Iterable<ChainRules>;
  /** Chains that refer to those above, each after those that it refers to. */
  readonly serviceChains: Iterable<ChainRules>;
  readonly filterFirst: Iterable<Command>;
  readonly nat: Iterable<Command>;
  readonly filterLast: Iterable<Command>;
  readonly mangle: Iterable<Command>;
}

/**
 * Writes the chains, then what leads to them. Split, the chains come in payloads of their own before it; else all is one
 * payload with one transaction for nat. Filter's has two parts where rules have to go after nat has changed.
 *
 * @returns the number of rules written by table
 * @throws what the port throws; everything up to the transaction that failed is done, and the dispatch is as it was
 */
export async function commit(port: IptablesPort, work: Work, split: boolean, settled: Settled): Promise<Written> {
  const written: Written = new Map();
  const restore = (sections: readonly CommandSource[]) =>
    port.restore(payloadText(restoreLines(sections, written), settled.breathe));
  if (split) {
    for (const chains of batches(work.endpointChains, BATCH.endpointChains)) {
      await restore([{ table: "nat", commands: fillChains(chains) }]);
    }
    for (const chains of batches(work.serviceChains, BATCH.serviceChains)) {
      await restore([{ table: "nat", commands: fillChains(chains) }]);
    }
  }
  await restore([
    { table: "filter", commands: work.filterFirst },
    { table: "nat", commands: split ? work.nat : natTogether(work) },
    { table: "filter", commands: work.filterLast },
    { table: "mangle", commands: work.mangle },
  ]);
  return written;
}

function* natTogether(work: Work): Generator<Command> {
  yield* fillChains(work.endpointChains);
  yield* fillChains(work.serviceChains);
  yield* work.nat;
}

/** Deletes group chains that nothing leads to any more: in one payload, or (split) in payloads from the top down. */
export async function deleteStale(
  port: IptablesPort,
  chains: Iterable<string>,
  split: boolean,
  settled: Settled,
): Promise<void> {
  const names = inDeletionOrder(chains);
  for (const batch of batches(names, split ? BATCH.staleChains : names.length)) {
    const section: CommandSource = { table: "nat", commands: deleteChains(batch) };
    await port.restore(payloadText(restoreLines([section]), settled.breathe));
  }
}
