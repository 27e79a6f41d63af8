/** Members of sets with their counts, and the changes that follow from changed groups. */

import type { ForwardingPlan, GroupChange, PlanChange, ServicePortGroup } from "@fairlead/core";
import { type PlanContext, rendersGroupsAlike } from "./context.ts";
import { barredKey } from "./frame.ts";
import { type BarredAddress, type GroupObjects, groupObjects, NO_OBJECTS, type WantedServer } from "./group.ts";
import { type Moves, SET_KEYS, type SetKey } from "./sets.ts";

/**
 * What all groups together need: an address, a set member or a server may be wanted by several of them, and goes with
 * the last one. The destinations of servers are not kept.
 */
export class Ledger {
  readonly servers = new Counted();
  readonly addresses = new Counted();
  readonly #members = new Map<SetKey, Counted>(SET_KEYS.map((set) => [set, new Counted()]));
  readonly #barred = new Map<string, BarredAddress>();

  get barred(): readonly BarredAddress[] {
    return [...this.#barred.values()];
  }

  members(set: SetKey): Counted {
    return this.#members.get(set) ?? new Counted();
  }

  filled(): ReadonlySet<SetKey> {
    return new Set(SET_KEYS.filter((set) => this.members(set).size > 0));
  }

  add(objects: GroupObjects): void {
    for (const { key } of objects.servers) this.servers.add(key);
    for (const address of objects.addresses) this.addresses.add(address);
    for (const { set, member } of objects.members) this.members(set).add(member);
    for (const barred of objects.barred) this.#barred.set(barredKey(barred), barred);
  }

  remove(objects: GroupObjects): void {
    for (const { key } of objects.servers) this.servers.delete(key);
    for (const address of objects.addresses) this.addresses.delete(address);
    for (const { set, member } of objects.members) this.members(set).delete(member);
    for (const barred of objects.barred) this.#barred.delete(barredKey(barred));
  }

  /** Whether two groups want the same server, one of them for its node port. */
  isContested(objects: GroupObjects): boolean {
    return objects.servers.some(({ key }) => this.servers.count(key) > 1);
  }
}

export interface ObjectChanges {
  readonly moves: LedgerUpdate;
  /** The virtual servers of the changed groups, as they were and as they have to be. */
  readonly before: ReadonlyMap<string, WantedServer>;
  readonly after: ReadonlyMap<string, WantedServer>;
  /** Two groups want one server: the change by itself does not say which of them has it. */
  readonly contested: boolean;
}

/** Takes the ledger over the change; yields after each group. */
export function* objectChanges(
  groups: Iterable<GroupChange>,
  ledger: Ledger,
  old: PlanContext,
  context: PlanContext,
): Generator<void, ObjectChanges> {
  const moves = new LedgerUpdate(ledger);
  const before = new Map<string, WantedServer>();
  const after = new Map<string, WantedServer>();
  let contested = false;
  const coming: GroupChange[] = [];
  for (const group of groups) {
    const objects = group.before === undefined ? NO_OBJECTS : groupObjects(group.before, old);
    contested ||= ledger.isContested(objects);
    moves.remove(objects);
    for (const server of objects.servers) before.set(server.key, server);
    coming.push(group);
    yield;
  }
  for (const group of coming) {
    const objects = group.after === undefined ? NO_OBJECTS : groupObjects(group.after, context);
    moves.add(objects);
    contested ||= ledger.isContested(objects);
    for (const server of objects.servers) after.set(server.key, server);
    yield;
  }
  return { moves, before, after, contested };
}

/**
 * The groups that stand for other kernel objects than before: those of the change, and where the node's addresses moved
 * also those that stand on such addresses or keep off them.
 */
export function* changedGroups(
  plan: ForwardingPlan,
  change: PlanChange,
  before: PlanContext,
  after: PlanContext,
): Generator<GroupChange> {
  yield* change.groups.values();
  if (rendersGroupsAlike(before, after)) return;
  for (const [id, group] of plan.groups) {
    if (!change.groups.has(id) && isReachedFromOutside(group)) yield { before: group, after: group };
  }
}

/** What a step from some groups' objects to others does to what is in the ledger at all. */
class LedgerUpdate {
  readonly #ledger: Ledger;
  readonly #addresses = new Map<string, boolean>();
  readonly #members = new Map<SetKey, Map<string, boolean>>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  remove(objects: GroupObjects): void {
    this.#touch(objects);
    this.#ledger.remove(objects);
  }

  add(objects: GroupObjects): void {
    this.#touch(objects);
    this.#ledger.add(objects);
  }

  addresses(): Moves {
    return moves(this.#addresses, this.#ledger.addresses);
  }

  members(): ReadonlyMap<SetKey, Moves> {
    return new Map([...this.#members].map(([set, touched]) => [set, moves(touched, this.#ledger.members(set))]));
  }

  #touch({ addresses, members }: GroupObjects): void {
    for (const address of addresses) note(this.#addresses, address, this.#ledger.addresses);
    for (const { set, member } of members) {
      const touched = this.#members.get(set) ?? new Map<string, boolean>();
      this.#members.set(set, touched);
      note(touched, member, this.#ledger.members(set));
    }
  }
}

function note(touched: Map<string, boolean>, key: string, present: Counted): void {
  if (!touched.has(key)) touched.set(key, present.has(key));
}

function moves(touched: ReadonlyMap<string, boolean>, present: Counted): Moves {
  const entries = [...touched];
  return {
    added: entries.filter(([key, was]) => !was && present.has(key)).map(([key]) => key),
    removed: entries.filter(([key, was]) => was && !present.has(key)).map(([key]) => key),
  };
}

/** Keys that stay until they were deleted as often as they were added. */
class Counted {
  readonly #counts = new Map<string, number>();

  get size(): number {
    return this.#counts.size;
  }

  keys(): IterableIterator<string> {
    return this.#counts.keys();
  }

  has(key: string): boolean {
    return this.#counts.has(key);
  }

  count(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  add(key: string): void {
    this.#counts.set(key, this.count(key) + 1);
  }

  delete(key: string): void {
    const left = this.count(key) - 1;
    if (left > 0) this.#counts.set(key, left);
    else this.#counts.delete(key);
  }
}

function isReachedFromOutside({ frontends }: ServicePortGroup): boolean {
  return frontends.some(({ reach }) => reach === "external");
}
