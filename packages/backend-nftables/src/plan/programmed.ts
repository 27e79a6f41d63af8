/** What has been programmed, with the counts of elements that several groups share. */

import type { Hex, NftChain, NftFlowtable, NftRule, NftSet, SetElement } from "@fairlead/netfilter/nft";
import type { PlanContext } from "./context.ts";
import type { GroupParts, SharedElement } from "./group-parts.ts";
import { Numbers, type Placement, type Pool } from "./placement.ts";
import type { ElementChanges, Need } from "./pools.ts";

/** What a table was written of, and is changed from. */
export interface Programmed {
  readonly context: PlanContext;
  readonly placements: Map<string, Placement>;
  readonly numbers: Numbers;
  readonly tally: Tally;
  /** Structures that are there, by their id; those that nothing needs any more stay until the next full sync. */
  readonly structures: Map<string, Need>;
  readonly sizes: Sizes;
}

export interface Sizes {
  services: number;
  endpoints: number;
}

export function nothingProgrammed(context: PlanContext): Programmed {
  return {
    context,
    placements: new Map(),
    numbers: new Numbers(),
    tally: new Tally(),
    structures: new Map(),
    sizes: { services: 0, endpoints: 0 },
  };
}

/** @param by 1: a group with these parts came, -1: it went */
export function countParts({ sizes, tally }: Programmed, { entries, uses, shared }: GroupParts, by: 1 | -1): void {
  tally.count(shared, by);
  sizes.services += by * entries.size;
  // One that is weighted has a map of its own, whichever frontends lead there.
  const weighted = new Set<Pool>();
  for (const { pool } of uses.values()) {
    if (weighted.has(pool)) continue;
    if (pool.weights !== undefined) weighted.add(pool);
    sizes.endpoints += by * pool.slots.length;
  }
}

/** Makes the sets and chains that are not there yet. */
export function addStructures(needs: Iterable<Need>, { structures, context }: Programmed, to: TableWriter): void {
  for (const need of needs) {
    if (structures.has(need.id)) continue;
    structures.set(need.id, need);
    const { sets, chains } = need.make(context);
    for (const set of sets) to.addSet(set);
    for (const chain of chains) addChain(chain, to);
  }
}

/** With its rules. */
export function addChain(chain: NftChain, to: TableWriter): void {
  to.addChain(chain);
  for (const rule of chain.rules) to.addRule(chain.name, rule);
}

/** How many groups have an element that several may have in common. */
class Tally {
  readonly #sets: Readonly<Record<SharedElement["set"], SharedSet>> = {
    "cluster-ips": new SharedSet(),
    "hairpin-connections": new SharedSet(),
  };

  count(elements: readonly SharedElement[], by: 1 | -1): void {
    for (const { set, key } of elements) this.#sets[set].count(key, by);
  }

  /** What came and went since the last time; a step for each. */
  *flush(to: ElementChanges): Generator<void> {
    for (const [set, shared] of Object.entries(this.#sets)) {
      for (const [key, there] of shared.moved()) {
        if (there) to.add(set, { key });
        else to.delete(set, key);
        yield;
      }
    }
  }
}

class SharedSet {
  readonly #counts = new Map<Hex, number>();
  /** How often each was there that was counted since the last time. */
  readonly #before = new Map<Hex, number>();

  count(key: Hex, by: 1 | -1): void {
    const before = this.#counts.get(key) ?? 0;
    if (!this.#before.has(key)) this.#before.set(key, before);
    if (before + by === 0) this.#counts.delete(key);
    else this.#counts.set(key, before + by);
  }

  *moved(): Generator<readonly [key: Hex, there: boolean]> {
    for (const [key, before] of this.#before) {
      const there = this.#counts.has(key);
      if (there !== before > 0) yield [key, there];
    }
    this.#before.clear();
  }
}

/** What a table is written into: a batch, or a table in memory. `NftBatch` fits. */
export interface TableWriter {
  addSet(set: Omit<NftSet, "elements">): unknown;
  /** Without its rules. */
  addChain(chain: Pick<NftChain, "name" | "base" | "comment">): unknown;
  addRule(chain: string, rule: NftRule): unknown;
  addFlowtable(flowtable: NftFlowtable): unknown;
  addElements(set: string, elements: Iterable<SetElement>): unknown;
}
