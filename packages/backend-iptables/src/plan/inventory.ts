import { renderRule } from "@fairlead/netfilter";
import type { ChainRules } from "./chain-rules.ts";
import { digestOf } from "./digest.ts";

/** Rules that the plan needs, by table. */
export interface Totals {
  filter: number;
  nat: number;
}

/** What a full sync learns while it renders, to go on from with changes. */
export class Inventory {
  readonly totals: Totals = { filter: 0, nat: 0 };
  /** Existing group chains that nothing wanted has come by yet, with the digests of their rules. */
  readonly #unclaimed: Map<string, string>;

  constructor(existing: Iterable<readonly [chain: string, digest: string]>) {
    this.#unclaimed = new Map(existing);
  }

  /** Counts chains, and leaves out those that the kernel has as they are. */
  *chains(chains: Iterable<ChainRules>): Generator<ChainRules> {
    for (const chain of chains) {
      this.totals.nat += chain.rules.length;
      if (!this.#claim(chain)) yield chain;
    }
  }

  /** Group chains that no chain wanted has the name of. */
  get unclaimed(): Iterable<string> {
    return this.#unclaimed.keys();
  }

  #claim({ chain, rules }: ChainRules): boolean {
    const existing = this.#unclaimed.get(chain);
    if (existing === undefined) return false;
    this.#unclaimed.delete(chain);
    return existing === digestOf(rules.map(renderRule));
  }
}
