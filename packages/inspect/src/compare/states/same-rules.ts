import type { RuleSet, Table } from "@fairlead/netfilter";
import { ChainPair } from "./chain-pair.ts";
import type { Heading } from "./rule-facts.ts";

interface ChainRef {
  readonly table: Table;
  readonly chain: string;
}

const HOOKS = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];

/**
 * Tells without a tracer where nothing has changed: all rules that packets to a place, and to wherever these rules send
 * them, may match are the same on both sides.
 */
export class SameRules {
  readonly #before: RuleSet;
  readonly #after: RuleSet;
  readonly #chains = new Map<string, ChainPair>();
  readonly #bases: readonly ChainRef[];

  constructor(before: RuleSet, after: RuleSet) {
    this.#before = before;
    this.#after = after;
    const tables = [...new Set([...before.keys(), ...after.keys()])];
    this.#bases = tables.flatMap((table) => HOOKS.map((chain): ChainRef => ({ table, chain })));
  }

  /** False also where it cannot be told. */
  for(protocol: string, heading: Heading): boolean {
    const headings = new Map([[headingText(heading), heading]]);
    for (let known = 0; known < headings.size; ) {
      known = headings.size;
      if (!this.#visitAll(protocol, headings)) return false;
    }
    return true;
  }

  /** Goes through all chains that can be reached; places that their rules translate to are added. */
  #visitAll(protocol: string, headings: Map<string, Heading>): boolean {
    const all = [...headings.values()];
    const queue = new Map(this.#bases.map((place) => [chainKey(place), place]));
    for (const place of queue.values()) {
      const rules = this.#chainAt(place).rulesFor(protocol, all);
      if (rules === undefined) return false;
      for (const { chain } of rules) if (chain !== undefined) addTo(queue, chainKey, { table: place.table, chain });
      for (const { to } of rules) {
        if (to === "unknown") return false;
        for (const heading of translated(to, all)) addTo(headings, headingText, heading);
      }
    }
    return true;
  }

  #chainAt(place: ChainRef): ChainPair {
    const key = chainKey(place);
    const { table, chain } = place;
    const at = (ruleSet: RuleSet) => ruleSet.get(table)?.chains.get(chain);
    const pair = this.#chains.get(key) ?? new ChainPair(at(this.#before), at(this.#after));
    this.#chains.set(key, pair);
    return pair;
  }
}

/** Where a rule that translates to a place sends what was on its way to these. */
function translated(to: Heading | undefined, headings: readonly Heading[]): readonly Heading[] {
  if (to === undefined) return [];
  return to.port === 0 ? headings.map(({ port }) => ({ ...to, port })) : [to];
}

function addTo<Item>(all: Map<string, Item>, keyOf: (item: Item) => string, item: Item): void {
  const key = keyOf(item);
  if (!all.has(key)) all.set(key, item);
}

function chainKey({ table, chain }: ChainRef): string {
  return `${table} ${chain}`;
}

function headingText({ address, port }: Heading): string {
  return `${address} ${port}`;
}
