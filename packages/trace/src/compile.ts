import type { AddressMatch, ChainState, Rule, RuleSet, Table, TableState } from "@fairlead/netfilter";
import { type AddressRange, type AddressWords, addressRange } from "./address.ts";

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
  /** The first rule from there on that a packet to the address may match; as many as there are rules: none. */
  next(from: number, destination: AddressWords): number;
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

/** Chains of fewer rules are looked through one by one. */
const INDEXED_FROM = 32;

function compileChain(table: TableState["table"], state: ChainState): CompiledChain {
  const rules = state.rules.map((rule, index) => ({
    index,
    rule,
    source: compileAddress(rule.source),
    destination: compileAddress(rule.destination),
  }));
  const next = rules.length < INDEXED_FROM ? (from: number) => from : destinationIndex(rules);
  return { table, name: state.name, policy: state.policy ?? "ACCEPT", rules, next };
}

function compileAddress(match: AddressMatch | undefined): CompiledAddress | undefined {
  return match === undefined ? undefined : { negated: match.negated === true, range: addressRange(match.cidr) };
}

/** Dispatch chains have a rule for each address: those of other addresses are not even looked at. */
function destinationIndex(rules: readonly CompiledRule[]): CompiledChain["next"] {
  const anywhere: number[] = [];
  const exact = new Map<string, number[]>();
  for (const { index, destination } of rules) {
    if (destination === undefined || destination.negated || !isHost(destination.range)) anywhere.push(index);
    else listAt(exact, destination.range.words.join(".")).push(index);
  }
  return (from, destination) => {
    const own = exact.get(destination.join("."));
    const general = firstFrom(anywhere, from) ?? rules.length;
    return Math.min(general, (own && firstFrom(own, from)) ?? rules.length);
  };
}

function isHost({ masks }: AddressRange): boolean {
  return masks.every((mask) => mask === 0xffffffff);
}

function listAt(lists: Map<string, number[]>, key: string): number[] {
  const known = lists.get(key);
  if (known !== undefined) return known;
  const list: number[] = [];
  lists.set(key, list);
  return list;
}

/** The first number of an ascending list that is not below. */
function firstFrom(ascending: readonly number[], from: number): number | undefined {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ascending[middle] ?? 0) < from) low = middle + 1;
    else high = middle;
  }
  return ascending[low];
}
