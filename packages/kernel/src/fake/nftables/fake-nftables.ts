/** nf_tables in memory: transactions, listings, packets that add elements, and events. */

import { type Clock, systemClock } from "@fairlead/base";
import {
  elementKey,
  type Hex,
  type NftBatch,
  type NftFamily,
  type NftSet,
  type NftTable,
  type SetElement,
} from "@fairlead/netfilter/nft";
import { Wake } from "../../address-monitor.ts";
import { AnswersLost, answerOfCommitLost, errnoOf, NftablesError } from "../../nftables/exchange.ts";
import type { NftablesClient } from "../../nftables/open.ts";
import { concerns, type NftablesNews, type NftablesWatchOptions } from "../../nftables/watch.ts";
import type { Argv } from "../../runner.ts";
import { type Fault, Faults } from "../faults.ts";
import { timed } from "./objects.ts";
import { type FakeSet, isThere, listed, listedSet, tableKey } from "./state.ts";
import { FakeRuleset } from "./transaction.ts";

/** The kernel that the fake stands for. */
export interface FakeNftablesOptions {
  /** Shared with other fakes; default: its own, without any fault. */
  readonly faults?: Faults;
  /** By which elements with timeouts go. */
  readonly clock?: Pick<Clock, "monotonic">;
  /** Bytes that a transaction can have, as in a user namespace. Default: as many as one likes. */
  readonly room?: number;
}

/** The process that `meddle` stands for. */
const OTHER_PROCESS = { id: 4711, name: "nft" };

/**
 * nf_tables in memory. It reads the bytes of a transaction as the kernel does, carries out all of it or nothing, and
 * refuses what the kernel refuses of each message, with the same error. It does not follow the ways of packets: circles
 * of chains, and statements at hooks that do not allow them, are taken.
 */
export class FakeNftables implements NftablesClient {
  /** What goes wrong, and which calls there were. */
  readonly faults: Faults;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #room: number;
  readonly #ruleset = new FakeRuleset();
  readonly #watchers = new Watchers();

  constructor({
    faults = new Faults(),
    clock = systemClock,
    room = Number.MAX_SAFE_INTEGER,
  }: FakeNftablesOptions = {}) {
    this.faults = faults;
    this.#clock = clock;
    this.#room = room;
  }

  commit(batch: NftBatch): Promise<void> {
    const bytes = batch.finish();
    return this.#send("commit", batch, bytes);
  }

  check(batch: NftBatch): Promise<void> {
    const bytes = batch.finishAsCheck();
    return this.#send("check", batch, bytes);
  }

  roomFor(wanted: number): number {
    return Math.min(wanted, this.#room);
  }

  generation(): Promise<number> {
    return this.#ask(["generation"], () => this.#ruleset.generation);
  }

  table(family: NftFamily, name: string): Promise<NftTable | undefined> {
    return this.#ask(["table", family, name], () => this.tableNow(family, name));
  }

  sets(
    family: NftFamily,
    table: string,
    wanted: (set: Omit<NftSet, "elements">) => boolean,
  ): Promise<ReadonlyMap<string, NftSet>> {
    return this.#ask(["sets", family, table], () => {
      const { sets = new Map<string, FakeSet>() } = this.#ruleset.tables.get(tableKey(family, table)) ?? {};
      const chosen = [...sets].filter(([, { facts }]) => wanted(facts));
      return new Map(chosen.map(([name, set]) => [name, listedSet(set, this.#clock.monotonic())]));
    });
  }

  counted(family: NftFamily, table: string, chain: string): Promise<number | undefined> {
    return this.#ask(["counted", family, table, chain], () => {
      const there = this.#ruleset.tables.get(tableKey(family, table))?.chains.get(chain);
      return there === undefined || there.rules.length === 0 ? undefined : (there.packets ?? 0);
    });
  }

  watch(options: NftablesWatchOptions): AsyncIterable<NftablesNews> {
    return this.#watchers.watch(options);
  }

  /** Does nothing: there is no socket. */
  async close(): Promise<void> {}

  /** A table as it is now, without a call. */
  tableNow(family: NftFamily, name: string): NftTable | undefined {
    const table = this.#ruleset.tables.get(tableKey(family, name));
    return table && listed(table, this.#clock.monotonic());
  }

  /** The generation as it is now, without a call. */
  get generationNow(): number {
    return this.#ruleset.generation;
  }

  /**
   * What another process does: no call of ours, no fault.
   *
   * @throws NftablesError when it would be refused
   */
  meddle(batch: NftBatch, process = OTHER_PROCESS): void {
    this.#carryOut(batch, batch.finish());
    this.#notifyOfOthers(process, [batch]);
  }

  /** Another process puts a whole table there, in the place of one of that name. */
  put(table: NftTable, process = OTHER_PROCESS): void {
    this.#ruleset.put(table, this.#clock.monotonic());
    this.#notifyOfOthers(process, [{ family: table.family, table: table.name }]);
  }

  /** `nft flush ruleset`, by hand. */
  flush(process = OTHER_PROCESS): void {
    const gone = this.#ruleset.flush();
    this.#notifyOfOthers(
      process,
      gone.map(({ family, name }) => ({ family, table: name })),
    );
  }

  /** A device comes; `lo` is there from the start. */
  addDevice(name: string): void {
    this.#ruleset.devices.add(name);
  }

  /** A device goes. */
  deleteDevice(name: string): void {
    this.#ruleset.deleteDevice(name);
  }

  /** A device gets another name. */
  renameDevice(name: string, to: string): void {
    this.#ruleset.renameDevice(name, to);
  }

  /** More happened than the kernel could report. */
  loseNews(): void {
    this.#watchers.notify({ kind: "lost", tables: [] });
  }

  /**
   * A packet has a rule remember an element (dynset), or renew it.
   *
   * @returns false: the set is full, and the rule ends there
   * @throws Error for a set that does not exist
   */
  remember(family: NftFamily, table: string, set: string, element: SetElement): boolean {
    const there = this.#ruleset.tables.get(tableKey(family, table))?.sets.get(set);
    if (there === undefined) throw new Error(`no set ${set} in table ${family} ${table}`);
    return remember(there, element, this.#clock.monotonic());
  }

  /**
   * Packets meet the counters of a chain.
   *
   * @throws Error for a chain that does not exist
   */
  count(family: NftFamily, table: string, chain: string, packets: number): void {
    const there = this.#ruleset.tables.get(tableKey(family, table))?.chains.get(chain);
    if (there === undefined) throw new Error(`no chain ${chain} in table ${family} ${table}`);
    there.packets = (there.packets ?? 0) + packets;
  }

  /** A packet has a rule take an element out (dynset). */
  forget(family: NftFamily, table: string, set: string, key: Hex): void {
    this.#ruleset.tables.get(tableKey(family, table))?.sets.get(set)?.elements.delete(elementKey({ key }));
  }

  async #send(what: "commit" | "check", batch: NftBatch, bytes: Buffer): Promise<void> {
    const argv: Argv = ["netlink", "nf_tables", what, batch.family, batch.table];
    const fault = await this.faults.begin(argv);
    if (fault !== undefined && fault.kind !== "lost") throw injected(fault, batch);
    this.#carryOut(batch, bytes);
    if (fault !== undefined) throw answerOfCommitLost(batch);
  }

  async #ask<T>(what: readonly string[], work: () => T): Promise<T> {
    const fault = await this.faults.begin(["netlink", "nf_tables", ...what]);
    if (fault !== undefined) throw new AnswersLost([]);
    return work();
  }

  #carryOut(batch: NftBatch, bytes: Buffer): void {
    if (bytes.length > this.#room) throw new NftablesError(batch, undefined, errnoOf("EMSGSIZE"));
    this.#ruleset.carryOut(batch, bytes, this.#clock.monotonic());
  }

  #notifyOfOthers(
    process: { readonly id: number; readonly name: string },
    touched: readonly { readonly family: NftFamily; readonly table: string }[],
  ): void {
    const tables = touched.map(({ family, table }) => ({ family, name: table }));
    this.#watchers.notify({ kind: "transaction", generation: this.#ruleset.generation, process, tables });
  }
}

function injected(fault: Exclude<Fault, { kind: "delay" | "lost" }>, batch: NftBatch): Error {
  if (fault.kind === "kill") return answerOfCommitLost(batch);
  return new NftablesError(batch, batch.objectOf(fault.message ?? 0), errnoOf(fault.errno ?? "ENOMEM"));
}

/** The watchers, and what each has not read yet. */
class Watchers {
  readonly #watching = new Set<{ readonly wake: Wake; readonly news: NftablesNews[] }>();

  notify(news: NftablesNews): void {
    for (const one of this.#watching) {
      one.news.push(news);
      one.wake.up();
    }
  }

  async *watch({
    signal,
    tables,
    onListening = () => {},
  }: NftablesWatchOptions): AsyncGenerator<NftablesNews, void, void> {
    const one = { wake: new Wake(signal), news: [] as NftablesNews[] };
    this.#watching.add(one);
    onListening();
    try {
      while (!signal.aborted) {
        one.wake.forget();
        for (const news of one.news.splice(0)) if (concerns(news, tables)) yield news;
        await one.wake.wait();
      }
    } finally {
      this.#watching.delete(one);
    }
  }
}

/**
 * What a rule that updates a dynamic set does (nft_dynset_eval): renews what is there, and adds what is not.
 *
 * @returns false: there is no room for it
 */
function remember(set: FakeSet, element: SetElement, now: number): boolean {
  if (!set.facts.flags.includes("dynamic")) throw new Error(`set ${set.facts.name}: packets cannot change it`);
  const key = elementKey(element);
  const there = set.elements.get(key);
  const known = there !== undefined && isThere(there, now);
  const { size = Number.POSITIVE_INFINITY } = set.facts;
  if (!known && [...set.elements.values()].filter((one) => isThere(one, now)).length >= size) return false;
  // A map keeps the value that it has.
  set.elements.set(key, timed(set.facts, known ? { ...element, ...keptValue(there.element) } : element, now));
  return true;
}

function keptValue({ value }: SetElement): Pick<SetElement, "value"> {
  return value === undefined ? {} : { value };
}
