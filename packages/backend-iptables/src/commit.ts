/** Writes batches into the kernel, and what happens where one is refused. */

import {
  type ChainFill,
  type Command,
  deleteChains,
  emptyChain,
  type PayloadSection,
  payloadText,
  restoreLines,
  type Table,
} from "@fairlead/netfilter";
import type { ResolvedOptions } from "./options.ts";
import { chainsOf, type GroupChains } from "./plan/group.ts";
import { appendRules, type ChainRules, fillChains, inDeletionOrder } from "./plan/rule-parts.ts";
import type { RulesPort } from "./port.ts";

/**
 * What a transaction of the nft variant may hold: the tool looks each name of a chain up in a list of all that the
 * transaction has named, those in jumps among them, so its cost grows with the square of their number. Rules are those
 * of service chains, of which each may name another chain; a single chain may have more.
 */
export const BATCH = { endpointChains: 500, serviceChains: 250, staleChains: 500, rules: 2000 } as const;

export type Written = Map<Table, number>;

/** Everything that one sync writes. The iterables are read once, the chains first and then in this order. */
export type Work = Chains & Rest;

/**
 * Transactions of one process of the nft variant. Starting one for each takes a third more in the kernel; but the tool
 * keeps what it has written, and becomes slower with each: 240 in one process took it twice the time.
 */
const IN_ONE_PROCESS = 20;

/**
 * Writes the chains, then what leads to them. Split, the chains come in transactions of their own before it, by as many
 * processes as that takes; else all is one payload with one transaction for nat. Filter's has two parts where rules
 * have to go after nat has changed.
 *
 * @returns the number of rules written by table
 * @throws what the port throws; everything up to the transaction that failed is done, and the dispatch is as it was
 */
export async function commit(port: RulesPort, work: Work, split: boolean, options: ResolvedOptions): Promise<Written> {
  const written: Written = new Map();
  for (const part of parts(sections(work, split), split ? IN_ONE_PROCESS : Number.POSITIVE_INFINITY)) {
    await port.restore(payloadText(restoreLines(part, written), options.turn));
  }
  return written;
}

/**
 * Deletes group chains that nothing leads to anymore: in one transaction, or (split) in several, from the top down.
 */
export async function deleteStale(
  port: RulesPort,
  chains: Iterable<string>,
  split: boolean,
  options: ResolvedOptions,
): Promise<void> {
  const names = inDeletionOrder(chains);
  if (names.length === 0) return;
  const sections = [...batches(names, split ? BATCH.staleChains : names.length)].map(
    (batch): PayloadSection => ({ table: "nat", commands: deleteChains(batch) }),
  );
  for (const part of parts(sections, IN_ONE_PROCESS)) {
    await port.restore(payloadText(restoreLines(part), options.turn));
  }
}

/** Cuts a sequence into arrays of at most `size`, the last one shorter; an empty sequence gives none. */
export function* batches<T>(items: Iterable<T>, size: number): Generator<T[]> {
  for (const part of parts(items, size)) yield [...part];
}

/**
 * Chains that are made one after the other, before they get their rules: as many as a few milliseconds name and sort.
 * Of 110,000 the legacy tool takes batches of the last size faster than 500 at a time, and than all at once, where a
 * chain's making and filling are far apart. The first ones are smaller: code that has just been loaded takes several
 * times as long.
 */
const MADE_AT_ONCE = { first: 250, last: 2500 } as const;

/**
 * The chain that all jump to comes first. Made first: as `madeInBatches`; else each chain is made where its rules
 * stand.
 */
interface Chains {
  readonly makeFirst: boolean;
  readonly chains: Iterable<GroupChains>;
}

interface Rest {
  readonly filterFirst: PayloadSection["commands"];
  readonly nat: PayloadSection["commands"];
  readonly filterLast: Iterable<Command>;
  readonly mangle: Iterable<Command>;
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
  let rules = 0;
  for (const group of groups) {
    for (const chain of group.endpointChains) {
      endpointChains.push(chain);
      if (endpointChains.length < BATCH.endpointChains) continue;
      yield filled(endpointChains);
      endpointChains = [];
    }
    for (const chain of group.serviceChains) {
      serviceChains.push(chain);
      rules += chain.rules.length;
      if (serviceChains.length < BATCH.serviceChains && rules < BATCH.rules) continue;
      yield filled(endpointChains);
      yield filled(serviceChains);
      endpointChains = [];
      serviceChains = [];
      rules = 0;
    }
  }
  yield filled(endpointChains);
  yield filled(serviceChains);
}

function filled(chains: readonly ChainRules[]): PayloadSection {
  return { table: "nat", commands: fillChains(chains) };
}

function* natTogether(work: Work): Generator<Command | ChainFill> {
  if (work.makeFirst) yield* madeInBatches(work.chains);
  else for (const group of work.chains) yield* fillChains(chainsOf(group));
  yield* work.nat;
}

/**
 * Gives chains their rules, after all of a batch were made, the last name first. The legacy tool keeps its chains in
 * the order of their names and looks for the place of each new one; next to the one before it finds it at once.
 */
function* madeInBatches(groups: Iterable<GroupChains>): Generator<Command | ChainFill> {
  let batch: ChainRules[] = [];
  let size: number = MADE_AT_ONCE.first;
  for (const group of groups) {
    for (const chain of chainsOf(group)) {
      batch.push(chain);
      if (batch.length < size) continue;
      yield* made(batch);
      batch = [];
      size = Math.min(2 * size, MADE_AT_ONCE.last);
    }
  }
  yield* made(batch);
}

function* made(chains: readonly ChainRules[]): Generator<Command | ChainFill> {
  const names = chains.map(({ chain }) => chain);
  for (const name of names.sort().reverse()) yield emptyChain(name);
  yield* appendRules(chains);
}

/** The same without arrays: each part is to be read to its end before the next. */
function* parts<T>(items: Iterable<T>, size: number): Generator<Iterable<T>> {
  const iterator = items[Symbol.iterator]();
  function* part(first: T): Generator<T> {
    yield first;
    for (let count = 1; count < size; count++) {
      const next = iterator.next();
      if (next.done === true) return;
      yield next.value;
    }
  }
  for (let next = iterator.next(); next.done !== true; next = iterator.next()) yield part(next.value);
}

/**
 * Names that are held at most before they are due: a megabyte. In a storm of changes a period makes tens of thousands
 * stale.
 */
const MOST = 10_000;

/**
 * Chains of groups and endpoints that are gone. Nothing leads to them, so they may wait: in a large cluster they are
 * deleted at most once in a period, unless they become too many, elsewhere with the change that made them stale.
 */
export class StaleChains {
  readonly #period: number;
  readonly #pending = new Set<string>();
  #deletedAt = Number.NEGATIVE_INFINITY;
  #left = "";

  /** @param period milliseconds */
  constructor(period: number) {
    this.#period = period;
  }

  add(chains: Iterable<string>): void {
    for (const chain of chains) this.#pending.add(chain);
  }

  /** They are in use again, or deleted, or not there anymore. */
  forget(chains: Iterable<string>): void {
    for (const chain of chains) this.#pending.delete(chain);
  }

  clear(): void {
    this.#pending.clear();
  }

  /** @returns what is to be deleted at `now` */
  due(now: number, large: boolean): readonly string[] {
    const wait = large && now - this.#deletedAt <= this.#period && this.#pending.size < MOST;
    return wait ? [] : [...this.#pending];
  }

  /**
   * They could not be deleted.
   *
   * @returns whether that is new: a full sync tries the same ones again and again
   */
  left(chains: readonly string[]): boolean {
    const before = this.#left;
    this.#left = [...chains].sort().join(" ");
    return this.#left !== before;
  }

  deleted(chains: readonly string[], now: number): void {
    this.forget(chains);
    if (chains.length > 0) this.#deletedAt = now;
  }
}
