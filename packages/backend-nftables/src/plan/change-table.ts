/** What a change of the plan comes to in the table. */

import type { ServicePortGroup } from "@fairlead/core";
import type { Hex, NftBatch, SetElement } from "@fairlead/netfilter/nft";
import type { PlanContext } from "./context.ts";
import { changeFrame } from "./frame-chains.ts";
import { firewalls } from "./frame-sets.ts";
import { type GroupParts, groupParts } from "./group-parts.ts";
import { identityOf, type Memory, type Placement, place } from "./placement.ts";
import { type ElementChanges, poolChanges } from "./pools.ts";
import { addStructures, countParts, type Programmed } from "./programmed.ts";
import { stickyChanges } from "./sticky.ts";
import { weightedChanges } from "./weighted.ts";
import { IN_ONE_MESSAGE } from "./write-table.ts";

/** What a change comes to once the kernel has taken the batch. */
interface TableChange {
  readonly programmed: Programmed;
  /** Chains to which nothing leads any more. They are empty; a kernel before 6.2 does not let go of them at once. */
  readonly stale: readonly string[];
  /** Chains of single services to which something leads, of those that were written. */
  readonly inUse: readonly string[];
  /** Elements that came, those that replace others included. */
  readonly written: { readonly services: number; readonly endpoints: number };
}

/**
 * Writes what takes a table from what it was to other groups and another context; nothing, where nothing differs.
 * Changes `before` as it goes: where the batch fails, that is worth nothing any more.
 *
 * @param groups as they are now, by id; undefined: gone
 */
export function* changeTable(
  before: Programmed,
  groups: readonly (readonly [string, ServicePortGroup | undefined])[],
  context: PlanContext,
  batch: NftBatch,
): Generator<void, TableChange> {
  const programmed: Programmed = { ...before, context };
  const step = new TableUpdate(programmed, batch, memoriesOfGone(before, groups));
  changeFrame(before.context, context, batch, step.endpoints);
  for (const [id, group] of groups) {
    yield* step.group(id, group);
    yield;
  }
  return yield* step.finish();
}

/** A port that is renamed goes under one id and comes under another, in one change. */
function memoriesOfGone(
  { placements }: Programmed,
  groups: readonly (readonly [string, ServicePortGroup | undefined])[],
): ReadonlyMap<string, Memory> {
  const memories = new Map<string, Memory>();
  for (const [id, after] of groups) {
    const before = after === undefined ? placements.get(id) : undefined;
    if (before?.memory !== undefined) memories.set(identityOf(before.group), before.memory);
  }
  return memories;
}

class TableUpdate {
  readonly endpoints = new Collected();
  readonly #entries = new Collected();
  readonly #offloaded = new Collected();
  readonly #stale: string[] = [];
  readonly #inUse: string[] = [];
  readonly #programmed: Programmed;
  readonly #batch: NftBatch;
  readonly #gone: ReadonlyMap<string, Memory>;

  /** @param gone what was remembered of groups that go, by `identityOf` */
  constructor(programmed: Programmed, batch: NftBatch, gone: ReadonlyMap<string, Memory>) {
    this.#programmed = programmed;
    this.#batch = batch;
    this.#gone = gone;
  }

  *group(id: string, group: ServicePortGroup | undefined): Generator<void> {
    const { placements, numbers } = this.#programmed;
    const before = placements.get(id);
    const after = group && place(group, before ?? this.#renamed(group), numbers);
    const [was, is] = [groupParts(before, this.#programmed.context), groupParts(after, this.#programmed.context)];
    addStructures(is.needs, this.#programmed, this.#batch);
    this.#firewall(before, after);
    for (const key of new Set([...was.uses.keys(), ...is.uses.keys()])) {
      yield* poolChanges(was.uses.get(key), is.uses.get(key), this.endpoints);
    }
    yield* stickyChanges(before, after, this.endpoints);
    weightedChanges(before, after, this.endpoints);
    changeElements(was.numbers, is.numbers, this.endpoints);
    changeElements(was.offloaded, is.offloaded, this.#offloaded);
    changeElements(was.entries, is.entries, this.#entries);
    countParts(this.#programmed, is, 1);
    countParts(this.#programmed, was, -1);
    if (after === undefined) placements.delete(id);
    else placements.set(id, after);
  }

  *finish(): Generator<void, TableChange> {
    const batch = this.#batch;
    yield* this.#programmed.tally.flush(this.endpoints);
    yield* this.#offloaded.writeDeleted(batch);
    yield* this.#entries.writeDeleted(batch);
    yield* this.endpoints.writeDeleted(batch);
    yield* this.endpoints.writeAdded(batch);
    yield* this.#entries.writeAdded(batch);
    yield* this.#offloaded.writeAdded(batch);
    for (const chain of this.#stale) batch.flushChain(chain);
    const written = { services: this.#entries.added, endpoints: this.endpoints.added };
    return { programmed: this.#programmed, stale: this.#stale, inUse: this.#inUse, written };
  }

  #renamed(group: ServicePortGroup): Pick<Placement, "memory"> | undefined {
    if (group.affinitySeconds === undefined || this.#gone.size === 0) return undefined;
    const memory = this.#gone.get(identityOf(group));
    return memory && { memory };
  }

  /** A chain of before may still be there, empty: it is written anew. */
  #firewall(before: Placement | undefined, after: Placement | undefined): void {
    const { context } = this.#programmed;
    const was = before === undefined ? [] : firewalls(before.group, context);
    const is = after === undefined ? [] : firewalls(after.group, context);
    for (const { name } of was) if (!is.some((one) => one.name === name)) this.#stale.push(name);
    for (const chain of is) {
      const old = was.find(({ name }) => name === chain.name);
      if (sameText(old, chain)) continue;
      this.#batch.addChain(chain).flushChain(chain.name);
      for (const rule of chain.rules) this.#batch.addRule(chain.name, rule);
      this.#inUse.push(chain.name);
    }
  }
}

function changeElements(
  was: GroupParts["entries" | "numbers" | "offloaded"],
  is: GroupParts["entries" | "numbers" | "offloaded"],
  to: Collected,
): void {
  for (const [id, { set, element }] of was) {
    const now = is.get(id);
    if (now === undefined || !sameText(now.element, element)) to.delete(set, element.key);
  }
  for (const [id, { set, element }] of is) {
    const old = was.get(id);
    if (old === undefined || !sameText(old.element, element)) to.add(set, element);
  }
}

function sameText(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Elements that come and go, gathered by their set until all are known. */
class Collected implements ElementChanges {
  readonly #cleared = new Set<string>();
  readonly #deleted = new Map<string, Hex[]>();
  readonly #added = new Map<string, SetElement[]>();

  add(set: string, element: SetElement): void {
    const list = this.#added.get(set);
    if (list === undefined) this.#added.set(set, [element]);
    else list.push(element);
  }

  clear(set: string): void {
    this.#cleared.add(set);
  }

  delete(set: string, key: Hex): void {
    const list = this.#deleted.get(set);
    if (list === undefined) this.#deleted.set(set, [key]);
    else list.push(key);
  }

  /** How many come. */
  get added(): number {
    let sum = 0;
    for (const list of this.#added.values()) sum += list.length;
    return sum;
  }

  /** A step for each message. */
  *writeDeleted(to: NftBatch): Generator<void> {
    for (const set of this.#cleared) to.flushSet(set);
    for (const [set, keys] of this.#deleted) {
      for (const some of pieces(keys)) {
        to.deleteElements(set, some);
        yield;
      }
    }
  }

  /** A step for each message. */
  *writeAdded(to: NftBatch): Generator<void> {
    for (const [set, elements] of this.#added) {
      for (const some of pieces(elements)) {
        to.addElements(set, some);
        yield;
      }
    }
  }
}

function* pieces<T>(list: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < list.length; at += IN_ONE_MESSAGE) yield list.slice(at, at + IN_ONE_MESSAGE);
}
