/** Whether rules went that this process has not taken away itself. */

import type { Table } from "@fairlead/netfilter";
import type { RuleCounts } from "./tables-there.ts";

/** Names of chains, by table. */
export type ChainsByTable = Readonly<Partial<Record<Table, readonly string[]>>>;

/**
 * Compares how many rules there are from look to look. More of them are no loss, and what this process has written
 * between two looks is none either.
 */
export class LostRules {
  readonly #counts: RuleCounts;
  #writing = 0;
  /** How often something was written. */
  #written = 0;
  /** Undefined: the next look has nothing to compare with. */
  #before: readonly number[] | undefined;

  constructor(counts: RuleCounts) {
    this.#counts = counts;
  }

  /** Carries out what writes rules. */
  async writing(work: () => Promise<void>): Promise<void> {
    this.#writing++;
    this.#before = undefined;
    try {
      await work();
    } finally {
      this.#writing--;
      this.#written++;
    }
  }

  /** False before this process has written anything: only to ask would make the kernel create tables. */
  async look(chains: ChainsByTable): Promise<boolean> {
    const written = this.#written;
    if (written === 0 || this.#writing > 0) return false;
    const before = this.#before;
    const now: number[] = [];
    for (const [table, names] of Object.entries(chains)) {
      const counts = await this.#counts(table as Table, names);
      if (counts === undefined) return false;
      now.push(...counts);
    }
    if (this.#writing > 0 || this.#written !== written) return false;
    this.#before = now;
    return before !== undefined && now.some((count, at) => count < (before[at] ?? 0));
  }
}
