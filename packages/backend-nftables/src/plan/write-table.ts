/** The whole table, written anew. */

import { toEnd } from "@fairlead/base";
import type { ForwardingPlan, ServicePortGroup } from "@fairlead/core";
import {
  elementKey,
  type Hex,
  type NftBatch,
  type NftChain,
  type NftFlowtable,
  type NftRule,
  type NftSet,
  type NftTable,
  type SetElement,
} from "@fairlead/netfilter/nft";
import { DEFAULTS, EXCLUDED, LOOPBACK_REFUSALS, type PlanContext, type PlanSettings, planContext } from "./context.ts";
import { flowtable } from "./fast-path.ts";
import { frameChains } from "./frame-chains.ts";
import { excludedElements, firewalls, frameElements, frameSets } from "./frame-sets.ts";
import { type Entry, groupParts } from "./group-parts.ts";
import { type PlacedBefore, place } from "./placement.ts";
import { type ElementChanges, poolChanges } from "./pools.ts";
import {
  addChain,
  addStructures,
  countParts,
  nothingProgrammed,
  type Programmed,
  type TableWriter,
} from "./programmed.ts";
import { CLIENTS, stickyChanges } from "./sticky.ts";
import { weightedChanges } from "./weighted.ts";

/** What a table that is made anew takes over from the one that is there. */
export interface Before {
  placed(group: ServicePortGroup): PlacedBefore | undefined;
  /** Clients that were remembered, with the time that they have left; undefined: a step without one. */
  clients(placements: Programmed["placements"]): Iterable<SetElement | undefined>;
}

const NOTHING_BEFORE: Before = { placed: () => undefined, clients: () => [] };

/**
 * Writes a whole table: rules before the endpoints that they look up, since binding a rule to a map walks all of its
 * elements, and what leads to chains last, since each verdict is checked against the rules. A step for each group.
 */
export function* writeTable(
  groups: Iterable<ServicePortGroup>,
  context: PlanContext,
  to: TableWriter,
  before: Before = NOTHING_BEFORE,
): Generator<void, Programmed> {
  const programmed = nothingProgrammed(context);
  const elements = new ElementBuffers(to);
  const chains = frameChains(context);
  const offloading = flowtable(context);
  for (const set of frameSets(context)) to.addSet(set);
  if (offloading !== undefined) to.addFlowtable(offloading);
  for (const chain of chains) to.addChain(chain);
  for (const [set, list] of frameElements(context)) for (const element of list) elements.add(set, element);
  const clients = excludedElements(context);
  if (clients.length > 0) to.addElements(EXCLUDED, clients);
  const entries: Entry[] = [];
  for (const group of groups) {
    entries.push(...(yield* writeGroup(group, before, programmed, to, elements)));
    yield;
  }
  elements.flush();
  for (const { name, rules } of chains) for (const rule of rules) to.addRule(name, rule);
  yield* writeEntries(entries, elements);
  yield* programmed.tally.flush(elements);
  for (const client of before.clients(programmed.placements)) {
    if (client !== undefined) elements.add(CLIENTS, client);
    yield;
  }
  elements.flush();
  return programmed;
}

/** The table that a plan stands for, as a full sync writes it into a kernel that has none. */
export function planTable(plan: ForwardingPlan, settings: Partial<Omit<PlanSettings, "family">> = {}): NftTable {
  return toEnd(planTableSteps(plan, settings));
}

/** The same in steps, for callers that do other things between. */
export function* planTableSteps(
  plan: ForwardingPlan,
  settings: Partial<Omit<PlanSettings, "family">> = {},
): Generator<void, NftTable, void> {
  const context = planContext({ ...DEFAULTS, ...settings, family: plan.family }, plan);
  const table = new TableInMemory(context);
  yield* writeTable(plan.groups.values(), context, table);
  return table.table();
}

/** Elements in one message: few messages, and short work for each. */
export const IN_ONE_MESSAGE = 256;

export type Titled = Pick<PlanContext, "family" | "table" | "alongside">;

/** Has the table made anew, whatever is there, in the transaction. */
export function beginTable(batch: NftBatch, titled: Titled): void {
  batch.addTable().deleteTable().addTable(commentOf(titled));
}

export class TableInMemory implements TableWriter {
  readonly #chains = new Map<string, NftChain & { readonly rules: NftRule[] }>();
  readonly #sets = new Map<string, NftSet & { readonly elements: Map<string, SetElement> }>();

  readonly #flowtables = new Map<string, NftFlowtable>();
  readonly #titled: Titled;

  constructor(titled: Titled) {
    this.#titled = titled;
  }

  addSet(set: Omit<NftSet, "elements">): void {
    this.#sets.set(set.name, { ...set, elements: new Map() });
  }

  addChain({ name, base, comment }: Pick<NftChain, "name" | "base" | "comment">): void {
    this.#chains.set(name, { name, ...(base && { base }), ...(comment !== undefined && { comment }), rules: [] });
  }

  addRule(chain: string, rule: NftRule): void {
    this.#chains.get(chain)?.rules.push(rule);
  }

  addElements(set: string, elements: Iterable<SetElement>): void {
    for (const element of elements) this.#sets.get(set)?.elements.set(elementKey(element), element);
  }

  addFlowtable(flowtable: NftFlowtable): void {
    this.#flowtables.set(flowtable.name, flowtable);
  }

  table(): NftTable {
    const { family, table: name } = this.#titled;
    const flowtables = this.#flowtables;
    return {
      family,
      name,
      comment: commentOf(this.#titled),
      chains: this.#chains,
      sets: this.#sets,
      ...(flowtables.size > 0 && { flowtables }),
    };
  }
}

/** All of a group but what it has in common with others, and the elements that lead to it, which are the result. */
function* writeGroup(
  group: ServicePortGroup,
  before: Before,
  programmed: Programmed,
  to: TableWriter,
  elements: ElementBuffers,
): Generator<void, Iterable<Entry>> {
  const placement = place(group, before.placed(group), programmed.numbers);
  programmed.placements.set(group.id, placement);
  const parts = groupParts(placement, programmed.context);
  countParts(programmed, parts, 1);
  addStructures(parts.needs, programmed, to);
  for (const ranges of firewalls(group, programmed.context)) addChain(ranges, to);
  for (const use of parts.uses.values()) yield* poolChanges(undefined, use, elements);
  yield* stickyChanges(undefined, placement, elements);
  weightedChanges(undefined, placement, elements);
  for (const { set, element } of parts.numbers.values()) elements.add(set, element);
  for (const { set, element } of parts.offloaded.values()) elements.add(set, element);
  return parts.entries.values();
}

/**
 * Where a table has to go in several transactions, a frontend's clients are there before it serves, and whatever is
 * refused comes last: until then connections wait, and try again.
 */
const TURNS = ["first", "serving", "refusing"] as const;

function* writeEntries(entries: readonly Entry[], elements: ElementBuffers): Generator<void> {
  for (const turn of TURNS) {
    for (const { set, element } of entries) {
      if (turnOf(set) !== turn) continue;
      elements.add(set, element);
      yield;
    }
    elements.flush();
  }
}

function turnOf(set: string): (typeof TURNS)[number] {
  if (set === "service-ips" || set === "service-nodeports") return "serving";
  return set.startsWith("no-endpoint-") || set === LOOPBACK_REFUSALS ? "refusing" : "first";
}

/** Elements that come, gathered by their set, so that many go with one message. */
class ElementBuffers implements ElementChanges {
  readonly #to: Pick<TableWriter, "addElements">;
  readonly #added = new Map<string, SetElement[]>();

  constructor(to: Pick<TableWriter, "addElements">) {
    this.#to = to;
  }

  add(set: string, element: SetElement): void {
    const buffer = this.#added.get(set);
    if (buffer === undefined) this.#added.set(set, [element]);
    else if (buffer.push(element) >= IN_ONE_MESSAGE) this.#write(set, buffer);
  }

  clear(set: string): void {
    this.delete(set, "");
  }

  delete(set: string, key: Hex): void {
    throw new Error(`set ${set} is new; it has no element ${key} that could go`);
  }

  flush(): void {
    for (const [set, buffer] of this.#added) this.#write(set, buffer);
  }

  #write(set: string, buffer: SetElement[]): void {
    if (buffer.length > 0) this.#to.addElements(set, buffer);
    buffer.length = 0;
  }
}

/** kube-proxy's comment on its table, or one that distinguishes ours from it. */
function commentOf({ table, alongside }: Titled): string {
  return alongside ? `rules for ${table}, alongside kube-proxy` : "rules for kube-proxy";
}
