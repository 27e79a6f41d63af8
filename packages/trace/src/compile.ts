/** Chains of iptables, prepared so that a packet meets only rules that may match it. */

import { type AddressRange, type AddressWords, addressRange, ipv4Number } from "@fairlead/base";
import type { AddressMatch, ChainState, Rule, SavedChain, Table } from "@fairlead/netfilter";

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

/** Chains of fewer rules are looked through one by one. */
const INDEXED_FROM = 32;

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

/**
 * Dispatch chains have a rule for each address: those of other addresses are not even looked at.
 *
 * @param hostOf the one address that a rule is for; undefined: it is for more, or for none
 * @returns the first rule from a place on that a packet to an address may match; as many as there are rules: none
 */
function destinationIndex<Rules>(
  rules: readonly Rules[],
  hostOf: (rule: Rules) => AddressWords | undefined,
): (from: number, destination: AddressWords) => number {
  const anywhere: number[] = [];
  const exact = new Map<string, number[]>();
  for (const [index, rule] of rules.entries()) {
    const host = hostOf(rule);
    if (host === undefined) anywhere.push(index);
    else listAt(exact, host.join(".")).push(index);
  }
  return (from, destination) => {
    const own = exact.get(destination.join("."));
    const general = firstFrom(anywhere, from) ?? rules.length;
    return Math.min(general, (own && firstFrom(own, from)) ?? rules.length);
  };
}

function hostIn({ destination }: Rule): AddressWords | undefined {
  return destination === undefined || destination.negated === true ? undefined : hostOfCIDR(destination.cidr);
}

/** @param text as iptables-save prints it; what is not plain at a glance counts as a rule for more addresses */
function hostInText(text: string): AddressWords | undefined {
  const cidr = /^-d (\S+\/(?:32|128)) /.exec(text)?.[1];
  if (cidr === undefined) return undefined;
  const word = cidr.endsWith("/32") ? ipv4Number(cidr.slice(0, -3)) : -1;
  return word === -1 ? hostOfCIDR(cidr) : [word];
}

function hostOfCIDR(cidr: string): AddressWords | undefined {
  try {
    const { words, masks } = addressRange(cidr);
    return masks.every((mask) => mask === 0xffffffff) ? words : undefined;
  } catch {
    return undefined;
  }
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
