import { type AddressRange, type AddressWords, addressRange } from "@fairlead/base";
import type { AddressMatch, ChainState, Rule, SavedChain, Table } from "@fairlead/netfilter";
import { destinationIndex, hostIn, hostInText } from "./destination-index.ts";

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
  /** The rule at a place of the chain; undefined: there are not so many. */
  rule(index: number): CompiledRule | undefined;
  /** The first rule from there on that a packet to the address may match; as many as there are rules: none. */
  next(from: number, destination: AddressWords): number;
}

/** Chains of fewer rules are looked through one by one. */
const INDEXED_FROM = 32;

export function compileChain(table: Table, state: ChainState): CompiledChain {
  const compiled: CompiledRule[] = [];
  const rule = (index: number) => {
    const known = compiled[index];
    if (known !== undefined) return known;
    const read = isSaved(state) ? state.ruleAt(index) : state.rules[index];
    if (read === undefined) return undefined;
    const made = compileRule(read, index);
    compiled[index] = made;
    return made;
  };
  return { table, name: state.name, policy: state.policy ?? "ACCEPT", rule, next: nextOf(state) };
}

/** Of a listing the rules are not read for it. */
function nextOf(state: ChainState): CompiledChain["next"] {
  if (isSaved(state)) return state.texts.length < INDEXED_FROM ? here : destinationIndex(state.texts, hostInText);
  return state.rules.length < INDEXED_FROM ? here : destinationIndex(state.rules, hostIn);
}

const here = (from: number) => from;

function isSaved(state: ChainState | SavedChain): state is SavedChain {
  return "ruleAt" in state;
}

function compileRule(rule: Rule, index: number): CompiledRule {
  return { index, rule, source: compileAddress(rule.source), destination: compileAddress(rule.destination) };
}

function compileAddress(match: AddressMatch | undefined): CompiledAddress | undefined {
  return match === undefined ? undefined : { negated: match.negated === true, range: addressRange(match.cidr) };
}
