import type { ServicePortGroup } from "@fairlead/core";
import type { SetElement } from "@fairlead/netfilter/nft";
import type { PlanContext } from "./context.ts";
import { ElementBuffers } from "./element-buffers.ts";
import { EXCLUDED, excludedElements } from "./excluded-clients.ts";
import { flowtable } from "./fast-path.ts";
import { firewall } from "./firewall.ts";
import { frameChains } from "./frame-chains.ts";
import { frameElements, frameSets } from "./frame-sets.ts";
import { type Entry, groupParts } from "./group-parts.ts";
import { LOOPBACK_REFUSALS } from "./names.ts";
import { type PlacedBefore, place } from "./placement.ts";
import { poolChanges } from "./pool-changes.ts";
import { addChain, addStructures, countParts, nothingProgrammed, type Programmed } from "./programmed.ts";
import { stickyChanges } from "./sticky-changes.ts";
import { CLIENTS } from "./sticky-sets.ts";
import type { TableWriter } from "./table-writer.ts";

/** What a table that is made anew takes over from the one that is there. */
export interface Before {
  /** Where endpoints stood. */
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
  const ranges = firewall(group, programmed.context);
  if (ranges !== undefined) addChain(ranges, to);
  for (const use of parts.uses.values()) yield* poolChanges(undefined, use, elements);
  yield* stickyChanges(undefined, placement, elements);
  for (const { set, element } of parts.numbers.values()) elements.add(set, element);
  for (const { set, element } of parts.offloaded.values()) elements.add(set, element);
  return parts.entries.values();
}

/**
 * Where a table has to go in several transactions, who may use a frontend is there before it serves, and whatever is
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
