import { Counted } from "./counted.ts";
import { barredKey } from "./frame.ts";
import type { BarredAddress, GroupObjects } from "./group.ts";
import { SET_KEYS, type SetKey } from "./sets.ts";

/** What came and what went of one kind. */
export interface Moves {
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

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

  /** The sets that have a member. */
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

/** What a step from some groups' objects to others does to what is in the ledger at all. */
export class LedgerUpdate {
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
