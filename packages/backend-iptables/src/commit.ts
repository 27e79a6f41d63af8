import {
  type ChainFill,
  type Command,
  type PayloadSection,
  payloadText,
  restoreLines,
  type Table,
} from "@fairlead/netfilter";
import { batches, parts } from "./batches.ts";
import type { Settled } from "./options.ts";
import type { ChainRules } from "./plan/chain-rules.ts";
import { appendRules, deleteChains, fillChains, inDeletionOrder } from "./plan/commands.ts";
import type { GroupChains } from "./plan/group.ts";
import type { IptablesPort } from "./port.ts";

/**
 * What a transaction of the nft variant may hold: the kernel checks every path through the chains of a transaction, so its
 * cost grows with the square of their number.
 */
export const BATCH = { endpointChains: 500, serviceChains: 250, staleChains: 500 } as const;

/**
 * Transactions of one process of the nft variant. Starting one for each takes a third more in the kernel; but the tool keeps what it has
 * written, and becomes slower with each: 240 in one process took it twice the time.
 */
const IN_ONE_PROCESS = 20;

/** Rules that payloads have written, by table. */
export type Written = Map<Table, number>;

/** Everything that one sync writes. The iterables are read once, in this order. */
export interface Work {
  /** Makes all of `chains`, empty, before any of them gets rules; absent: each is made where its rules stand. */
  readonly declarations?: Iterable<Command>;
  /** The chain that all jump to comes first. */
  readonly chains: Iterable<GroupChains>;
  readonly filterFirst: PayloadSection["commands"];
  readonly nat: PayloadSection["commands"];
  readonly filterLast: Iterable<Command>;
  readonly mangle: Iterable<Command>;
}

/**
 * Writes the chains, then what leads to them. Split, the chains come in transactions of their own before it, by as many processes as
 * that takes; else all is one payload with one transaction for nat. Filter's has two parts where rules have to go after nat
 * has changed.
 *
 * @returns the number of rules written by table
 * @throws what the port throws; everything up to the transaction that failed is done, and the dispatch is as it was
 */
export async function commit(port: IptablesPort, work: Work, split: boolean, settled: Settled): Promise<Written> {
  const written: Written = new Map();
  for (const part of parts(sections(work, split), split ? IN_ONE_PROCESS : Number.POSITIVE_INFINITY)) {
    await port.restore(payloadText(restoreLines(part, written), settled.breathe));
  }
  return written;
}

function* sections(work: Work, split: boolean): Generator<PayloadSection> {
  if (split) yield* inBatches(work.chains);
  yield { table: "filter", commands: work.filterFirst };
  yield { table: "nat", commands: split ? work.nat : natTogether(work) };
  yield { table: "filter", commands: work.filterLast };
  yield { table: "mangle", commands: work.mangle };
}

/** Chains of endpoints before those of services that lead to them. */
function* inBatches(groups: Iterable<GroupChains>): Generator<PayloadSection> {
  let endpointChains: ChainRules[] = [];
  let serviceChains: ChainRules[] = [];
  for (const group of groups) {
    for (const chain of group.endpointChains) {
      endpointChains.push(chain);
      if (endpointChains.length < BATCH.endpointChains) continue;
      yield filled(endpointChains);
      endpointChains = [];
    }
    for (const chain of group.serviceChains) {
      serviceChains.push(chain);
      if (serviceChains.length < BATCH.serviceChains) continue;
      yield filled(endpointChains);
      yield filled(serviceChains);
      endpointChains = [];
      serviceChains = [];
    }
  }
  yield filled(endpointChains);
  yield filled(serviceChains);
}

function filled(chains: readonly ChainRules[]): PayloadSection {
  return { table: "nat", commands: fillChains(chains) };
}

function* natTogether(work: Work): Generator<Command | ChainFill> {
  const write = work.declarations === undefined ? fillChains : appendRules;
  yield* work.declarations ?? [];
  for (const { endpointChains, serviceChains } of work.chains) {
    yield* write(endpointChains);
    yield* write(serviceChains);
  }
  yield* work.nat;
}

/** Deletes group chains that nothing leads to any more: in one transaction, or (split) in several, from the top down. */
export async function deleteStale(
  port: IptablesPort,
  chains: Iterable<string>,
  split: boolean,
  settled: Settled,
): Promise<void> {
  const names = inDeletionOrder(chains);
  if (names.length === 0) return;
  const sections = [...batches(names, split ? BATCH.staleChains : names.length)].map(
    (batch): PayloadSection => ({ table: "nat", commands: deleteChains(batch) }),
  );
  for (const part of parts(sections, IN_ONE_PROCESS)) {
    await port.restore(payloadText(restoreLines(part), settled.breathe));
  }
}
