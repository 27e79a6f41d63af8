import type { AddressMatch, ChainState, Rule, RuleSet, Table, TableState } from "@fairlead/netfilter";
import { type AddressRange, addressRange } from "./address.ts";

/** A rule with its addresses taken apart. */
export interface CompiledRule {
  readonly index: number;
  readonly rule: Rule;
  readonly source: CompiledAddress | undefined;
  readonly destination: CompiledAddress | undefined;
}

export interface CompiledAddress {
  readonly negated: boolean;
  readonly range: AddressRange;
}

export interface CompiledChain {
  readonly table: Table;
  readonly name: string;
  readonly policy: "ACCEPT" | "DROP";
  readonly rules: readonly CompiledRule[];
}

/** A rule set whose chains are compiled when a packet first reaches them: most packets reach few of many. */
export class CompiledRuleSet {
  readonly #ruleSet: RuleSet;
  readonly #chains = new Map<Table, Map<string, CompiledChain>>();

  constructor(ruleSet: RuleSet) {
    this.#ruleSet = ruleSet;
  }

  chain(table: Table, name: string): CompiledChain | undefined {
    const compiled = this.#chains.get(table) ?? new Map<string, CompiledChain>();
    this.#chains.set(table, compiled);
    const known = compiled.get(name);
    if (known !== undefined) return known;
    const state = this.#ruleSet.get(table)?.chains.get(name);
    if (state === undefined) return undefined;
    const chain = compileChain(table, state);
    compiled.set(name, chain);
    return chain;
  }
}

function compileChain(table: TableState["table"], state: ChainState): CompiledChain {
  const rules = state.rules.map((rule, index) => ({
    index,
    rule,
    source: compileAddress(rule.source),
    destination: compileAddress(rule.destination),
  }));
  return { table, name: state.name, policy: state.policy ?? "ACCEPT", rules };
}

function compileAddress(match: AddressMatch | undefined): CompiledAddress | undefined {
  return match === undefined ? undefined : { negated: match.negated === true, range: addressRange(match.cidr) };
}
