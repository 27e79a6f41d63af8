import type { NftChain } from "@fairlead/netfilter/nft";
import type { PlanContext } from "./context.ts";
import type { GroupParts } from "./group-parts.ts";
import { Numbers } from "./memory.ts";
import type { Placement } from "./placement.ts";
import type { Need } from "./pools.ts";
import type { TableWriter } from "./table-writer.ts";
import { Tally } from "./tally.ts";

/** What a table was written of, and is changed from. */
export interface Programmed {
  readonly context: PlanContext;
  /** By group. */
  readonly placements: Map<string, Placement>;
  readonly numbers: Numbers;
  readonly tally: Tally;
  /** Structures that are there, by their id; those that nothing needs any more stay until the next full sync. */
  readonly structures: Map<string, Need>;
  readonly sizes: Sizes;
}

/** Elements that groups have, by what they are. */
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
  for (const { pool } of uses.values()) sizes.endpoints += by * pool.slots.length;
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
