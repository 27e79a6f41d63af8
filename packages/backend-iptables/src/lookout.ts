import type { Table } from "@fairlead/netfilter";

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

/**
 * Looks whether what must be in a table is there. In a large one, each time at the first thing, which a flush takes away, and
 * at one of the others, in turn, with rests between.
 */
export class Lookout {
  readonly #now: () => number;
  readonly #turns = new Map<Table, { next: number; restUntil: number }>();

  /** @param now a clock in milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Stops at the first look that is false.
   *
   * @param rules that the table holds
   */
  async holds(table: Table, rules: number, looks: readonly Look[]): Promise<boolean> {
    return allHold(rules > SMALL ? [...looks.slice(0, 1), ...this.#due(table, rules, looks.slice(1))] : looks);
  }

  /** The one whose turn it is; none where it is not yet time. */
  #due(table: Table, rules: number, looks: readonly Look[]): readonly Look[] {
    const { next, restUntil } = this.#turns.get(table) ?? { next: 0, restUntil: 0 };
    const now = this.#now();
    if (now < restUntil) return [];
    this.#turns.set(table, { next: next + 1, restUntil: now + rules * REST_PER_RULE });
    const turn = next % looks.length;
    return looks.slice(turn, turn + 1);
  }
}

async function allHold(looks: readonly Look[]): Promise<boolean> {
  for (const look of looks) if (!(await look())) return false;
  return true;
}
