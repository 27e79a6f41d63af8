import type { ChainRules } from "./chain-rules.ts";

/** Rules that the plan needs, by table. */
export interface Totals {
  filter: number;
  nat: number;
}

/** What a full sync learns while it renders, to go on from with changes. */
export class Inventory {
  readonly totals: Totals = { filter: 0, nat: 0 };
  /** Existing group chains that nothing wanted has come by yet. */
  readonly unclaimed: Set<string>;

  constructor(existing: Iterable<string>) {
    this.unclaimed = new Set(existing);
  }

  *chains(chains: Iterable<ChainRules>): Generator<ChainRules> {
    for (const chain of chains) {
      this.unclaimed.delete(chain.chain);
      this.totals.nat += chain.rules.length;
      yield chain;
    }
  }
}
