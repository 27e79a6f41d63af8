import type { RuleSet, Table } from "@fairlead/netfilter";
import { compileChain } from "./compile.ts";
import { IptablesChain } from "./iptables-chain.ts";
import type { Chain } from "./walk.ts";

/**
 * A rule set whose chains are looked at when a packet first reaches them, and their rules likewise: most packets reach
 * few of many.
 */
export class CompiledRuleSet {
  readonly #ruleSet: RuleSet;
  readonly #chains = new Map<Table, Map<string, Chain>>();

  constructor(ruleSet: RuleSet) {
    this.#ruleSet = ruleSet;
  }

  chain(table: Table, name: string): Chain | undefined {
    const compiled = this.#chains.get(table) ?? new Map<string, Chain>();
    this.#chains.set(table, compiled);
    const known = compiled.get(name);
    if (known !== undefined) return known;
    const state = this.#ruleSet.get(table)?.chains.get(name);
    if (state === undefined) return undefined;
    const chain = new IptablesChain(compileChain(table, state), (other) => this.chain(table, other));
    compiled.set(name, chain);
    return chain;
  }
}
