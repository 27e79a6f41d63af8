import type { Table } from "@fairlead/netfilter";
import type { IptablesPort } from "./port.ts";

/** A question to the kernel; false: what must be there is not. */
export type Look = () => Promise<boolean>;

/** Rules of a table up to which everything is looked at each time. */
const SMALL = 5000;

/**
 * Milliseconds of rest between looks beyond the first, for each rule of the table. A look reads the whole table (0.3 s in a
 * legacy one of 10,000 services with 10 endpoints, which has 430,000 lines): so they take some thousandth of the time, whatever the
 * size.
 */
const REST_PER_RULE = 0.5;

/** What is known of a table. */
interface Seen {
  /** As the kernel told it when looking began; undefined: it tells nothing. */
  readonly state: string | undefined;
  /** The first thing was there since. */
  first: boolean;
  /** So many of those that have their turn were there since, one after the other. */
  turns: number;
}

interface Turns {
  next: number;
  restUntil: number;
}

/**
 * Looks whether what must be in a table is there; not at all where the kernel says that the table is as it was when everything
 * was. In a large table, each time at the first thing, which a flush takes away, and at one of the others, in turn, with rests
 * between. Where the kernel tells how many rules there are, a flush is seen by that, and the first thing has its turn, too.
 */
export class Lookout {
  readonly #now: () => number;
  readonly #glance: NonNullable<IptablesPort["glance"]>;
  readonly #seen = new Map<Table, Seen>();
  readonly #turns = new Map<Table, Turns>();

  /** @param now a clock in milliseconds */
  constructor(now: () => number, glance: IptablesPort["glance"] = async () => undefined) {
    this.#now = now;
    this.#glance = glance;
  }

  /**
   * Stops at the first look that is false.
   *
   * @param rules that the table holds
   */
  async holds(table: Table, rules: number, looks: readonly Look[]): Promise<boolean> {
    const { state, entries } = (await this.#glance(table)) ?? {};
    if (entries !== undefined && entries < rules) return false;
    const seen = this.#seenAt(table, state);
    if (rules <= SMALL) return seen.turns >= looks.length || this.#all(seen, looks);
    const turning = entries === undefined ? looks.slice(1) : looks;
    if (entries === undefined && !seen.first && !(await allHold(looks.slice(0, 1)))) return false;
    seen.first = true;
    return seen.turns >= turning.length || this.#due(seen, this.#turnsOf(table, rules, entries), rules, turning);
  }

  /** Nothing is kept of a table that the kernel tells nothing of. */
  #seenAt(table: Table, state: string | undefined): Seen {
    const known = this.#seen.get(table);
    if (known !== undefined && state !== undefined && known.state === state) return known;
    const seen = { state, first: false, turns: 0 };
    this.#seen.set(table, seen);
    return seen;
  }

  async #all(seen: Seen, looks: readonly Look[]): Promise<boolean> {
    const hold = await allHold(looks);
    if (hold) seen.turns = looks.length;
    return hold;
  }

  /** What was just written is not looked at at once where a flush is seen otherwise. */
  #turnsOf(table: Table, rules: number, entries: number | undefined): Turns {
    const restUntil = entries === undefined ? 0 : this.#now() + rules * REST_PER_RULE;
    const turns = this.#turns.get(table) ?? { next: 0, restUntil };
    this.#turns.set(table, turns);
    return turns;
  }

  /** Looks at the one whose turn it is, once that is due. */
  async #due(seen: Seen, turns: Turns, rules: number, looks: readonly Look[]): Promise<boolean> {
    const now = this.#now();
    if (now < turns.restUntil) return true;
    const turn = turns.next++ % looks.length;
    turns.restUntil = now + rules * REST_PER_RULE;
    const hold = await allHold(looks.slice(turn, turn + 1));
    if (hold) seen.turns++;
    return hold;
  }
}

async function allHold(looks: readonly Look[]): Promise<boolean> {
  for (const look of looks) if (!(await look())) return false;
  return true;
}
