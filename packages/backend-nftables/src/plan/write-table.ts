import type { ServicePortGroup } from "@fairlead/core";
import type { NftChain, SetElement } from "@fairlead/netfilter/nft";
import type { PlanContext } from "./context.ts";
import { ElementBuffers } from "./element-buffers.ts";
import { firewall } from "./firewall.ts";
import { frameChains } from "./frame-chains.ts";
import { frameElements, frameSets } from "./frame-sets.ts";
import { type Entry, type GroupParts, groupParts } from "./group-parts.ts";
import { type PlacedBefore, type Placement, place } from "./placement.ts";
import { poolChanges } from "./pool-changes.ts";
import type { Need } from "./pools.ts";
import type { TableWriter } from "./table-writer.ts";
import { Tally } from "./tally.ts";

/** What a table was written of, and is changed from. */
export interface Programmed {
  readonly context: PlanContext;
  /** By group. */
  readonly placements: Map<string, Placement>;
  readonly tally: Tally;
  /** Structures that are there, by their id; those that nobody needs any more stay until the next full sync. */
  readonly structures: Set<string>;
  readonly sizes: Sizes;
}

/** Elements that groups have, by what they are. */
export interface Sizes {
  services: number;
  endpoints: number;
}

/** What a table that is made anew takes over from the one that is there. */
export interface Before {
  /** Where endpoints stood. */
  placed(group: ServicePortGroup): PlacedBefore | undefined;
  /** Clients that were remembered, with the time that they have left, and the set that they belong in. */
  clients(programmed: Programmed): Iterable<readonly [set: string, client: SetElement]>;
}

const NOTHING_BEFORE: Before = { placed: () => undefined, clients: () => [] };

/**
 * Where a table has to go in several transactions, who may use a frontend is there before it serves, and whatever is
 * refused comes last: until then connections wait, and try again.
 */
const TURNS = ["first", "serving", "refusing"] as const;

function turnOf(set: string): (typeof TURNS)[number] {
  if (set === "service-ips" || set === "service-nodeports") return "serving";
  return set.startsWith("no-endpoint-") ? "refusing" : "first";
}

/**
 * Writes a whole table: endpoints before the rules that look them up, and what leads to chains last, since the kernel
 * looks into maps when a rule is bound to them and checks each verdict against the rules. A step for each group.
 */
export function* writeTable(
  groups: Iterable<ServicePortGroup>,
  context: PlanContext,
  to: TableWriter,
  before: Before = NOTHING_BEFORE,
): Generator<void, Programmed> {
  const programmed: Programmed = {
    context,
    placements: new Map(),
    tally: new Tally(),
    structures: new Set(),
    sizes: { services: 0, endpoints: 0 },
  };
  const chains: NftChain[] = [...frameChains(context)];
  for (const set of frameSets(context)) to.addSet(set);
  for (const chain of chains) to.addChain(chain);
  const elements = new ElementBuffers(to);
  const entries: Entry[] = [];
  for (const group of groups) {
    const placement = place(group, before.placed(group));
    programmed.placements.set(group.id, placement);
    const parts = groupParts(placement);
    const { uses, shared, needs } = parts;
    const { services, endpoints } = sizesOf(parts);
    programmed.sizes.services += services;
    programmed.sizes.endpoints += endpoints;
    chains.push(...addStructures(needs, programmed, to), ...addFirewall(group, context, to));
    for (const use of uses.values()) poolChanges(undefined, use, elements);
    entries.push(...parts.entries.values());
    programmed.tally.count(shared, 1);
    yield;
  }
  for (const [set, list] of frameElements(context)) for (const element of list) elements.add(set, element);
  elements.flush();
  for (const chain of chains) for (const rule of chain.rules) to.addRule(chain.name, rule);
  for (const turn of TURNS) {
    for (const { set, element } of entries) {
      if (turnOf(set) !== turn) continue;
      elements.add(set, element);
      yield;
    }
    elements.flush();
  }
  yield* programmed.tally.flush(elements);
  for (const [set, element] of before.clients(programmed)) {
    elements.add(set, element);
    yield;
  }
  elements.flush();
  return programmed;
}

/** Makes the sets and chains that are not there yet. @returns the chains, whose rules are still to be added */
export function addStructures(
  needs: readonly Need[],
  { structures, context }: Programmed,
  to: TableWriter,
): readonly NftChain[] {
  const chains: NftChain[] = [];
  for (const { id, make } of needs) {
    if (structures.has(id)) continue;
    structures.add(id);
    const made = make(context);
    for (const set of made.sets) to.addSet(set);
    for (const chain of made.chains) to.addChain(chain);
    for (const { set, element } of made.elements ?? []) to.addElements(set, [element]);
    chains.push(...made.chains);
  }
  return chains;
}

export function sizesOf({ entries, uses }: GroupParts): Readonly<Sizes> {
  let endpoints = 0;
  for (const { pool } of uses.values()) endpoints += pool.slots.length;
  return { services: entries.size, endpoints };
}

function addFirewall(group: ServicePortGroup, context: PlanContext, to: TableWriter): readonly NftChain[] {
  const chain = firewall(group, context);
  if (chain === undefined) return [];
  to.addChain(chain);
  return [chain];
}
