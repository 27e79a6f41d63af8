/** Whether two rules, and two sets of rules, are the same in effect. */

import { containsCIDR } from "@fairlead/base";
import { Problem } from "../rule/options.ts";
import type {
  AddressMatch,
  ChainState,
  IPFamily,
  Match,
  NameMatch,
  PortMatch,
  Rule,
  RuleSet,
  Table,
} from "../rule/rule.ts";
import { RuleTextError } from "../rule/values.ts";
import { parseRuleWords, tokenize } from "./parse-rule.ts";
import { renderRule } from "./render.ts";

/** One difference between two rule sets. */
export type RuleSetDifference =
  | { readonly kind: "chain-missing" | "chain-extra"; readonly table: Table; readonly chain: string }
  | {
      readonly kind: "policy";
      readonly table: Table;
      readonly chain: string;
      readonly expected: string;
      readonly actual: string;
    }
  | {
      readonly kind: "rule-missing" | "rule-extra";
      readonly table: Table;
      readonly chain: string;
      /** Canonical text, as iptables-save prints it. */
      readonly rule: string;
    }
  | {
      /** The rules stand in the other order in `actual`, and a packet may match both. */
      readonly kind: "order";
      readonly table: Table;
      readonly chain: string;
      readonly first: string;
      readonly second: string;
    };

/** What is compared. */
export interface CompareOptions {
  /** What to compare; default: everything. */
  readonly chains?: (table: Table, chain: string) => boolean;
}

/**
 * How `actual` differs from `expected`, as a list that is empty when they do the same: chains and policies, the rules
 * of each chain as a multiset, and the order of those rules that a packet may match both of. Rules that exclude each
 * other (other protocols, disjoint addresses or ports) and rules with the same target may stand in any order. A
 * built-in chain that is absent counts as an empty one with policy ACCEPT.
 */
export function compareRuleSets(expected: RuleSet, actual: RuleSet, options: CompareOptions = {}): RuleSetDifference[] {
  const tables = new Set([...expected.keys(), ...actual.keys()]);
  return [...tables].flatMap((table) => compareTables(table, expected, actual, options.chains ?? (() => true)));
}

/**
 * The rule in the one form that the parsers give: what means the same becomes equal (order of connection states,
 * rounded probabilities, host bits, defaults).
 *
 * @throws RuleTextError for a rule that can't be written
 */
export function canonicalRule(rule: Rule, family: IPFamily = "IPv4"): Rule {
  return parseRuleWords(tokenize(renderRule(rule)), 0, family);
}

/**
 * A text that two rules share exactly when they are the same rule: for sets, maps and differences. Rules of others that
 * can't be written have one, too; no rule that can be written shares it.
 */
export function ruleKey(rule: Rule): string {
  try {
    return renderRule(canonicalRule(rule));
  } catch (error) {
    if (!(error instanceof RuleTextError || error instanceof Problem)) throw error;
    return `\0${JSON.stringify(rule)}`;
  }
}

/**
 * Of a rule by its key. False: another program's, with a text that can't be read, or written so that it would be read
 * back.
 */
export function isWritableKey(key: string): boolean {
  return !key.startsWith("\0");
}

/** As `isWritableKey`, for a caller that has no use for the key, which costs as much. */
export function isWritable(rule: Rule): boolean {
  return isWritableKey(ruleKey(rule));
}

/** True when the kernel cannot distinguish the rules. */
export function ruleEquals(a: Rule, b: Rule): boolean {
  return a === b || ruleKey(a) === ruleKey(b);
}

function compareTables(
  table: Table,
  expected: RuleSet,
  actual: RuleSet,
  wanted: (table: Table, chain: string) => boolean,
): RuleSetDifference[] {
  const before = expected.get(table)?.chains ?? new Map<string, ChainState>();
  const after = actual.get(table)?.chains ?? new Map<string, ChainState>();
  const names = [...new Set([...before.keys(), ...after.keys()])].filter((chain) => wanted(table, chain));
  return names.flatMap((chain) => compareChains(table, chain, before.get(chain), after.get(chain)));
}

function compareChains(
  table: Table,
  chain: string,
  expected: ChainState | undefined,
  actual: ChainState | undefined,
): RuleSetDifference[] {
  const builtIn = expected?.policy !== undefined || actual?.policy !== undefined;
  if (!builtIn && expected === undefined) return [{ kind: "chain-extra", table, chain }];
  if (!builtIn && actual === undefined) return [{ kind: "chain-missing", table, chain }];
  const policies = { expected: policyOf(expected, builtIn), actual: policyOf(actual, builtIn) };
  return [
    ...(policies.expected === policies.actual ? [] : [{ kind: "policy" as const, table, chain, ...policies }]),
    ...compareRules(table, chain, expected?.rules ?? [], actual?.rules ?? []),
  ];
}

function policyOf(chain: ChainState | undefined, builtIn: boolean): string {
  return chain?.policy ?? (chain === undefined && builtIn ? "ACCEPT" : "-");
}

function compareRules(
  table: Table,
  chain: string,
  expected: readonly Rule[],
  actual: readonly Rule[],
): RuleSetDifference[] {
  const places = placesByKey(actual);
  const differences: RuleSetDifference[] = [];
  const common: Placed[] = [];
  for (const rule of expected) {
    const key = ruleKey(rule);
    const place = places.get(key)?.shift();
    if (place === undefined) differences.push({ kind: "rule-missing", table, chain, rule: key });
    else common.push({ rule, key, place });
  }
  const extra = [...places].flatMap(([rule, left]) => left.map(() => rule));
  return [
    ...differences,
    ...extra.map((rule) => ({ kind: "rule-extra" as const, table, chain, rule })),
    ...compareOrder(common).map(([first, second]) => ({ kind: "order" as const, table, chain, first, second })),
  ];
}

function placesByKey(rules: readonly Rule[]): Map<string, number[]> {
  const places = new Map<string, number[]>();
  rules.forEach((rule, at) => {
    const key = ruleKey(rule);
    const list = places.get(key);
    if (list === undefined) places.set(key, [at]);
    else list.push(at);
  });
  return places;
}

interface Placed {
  readonly rule: Rule;
  readonly key: string;
  /** Where the rule stands in the other chain. */
  readonly place: number;
}

/** Pairs that stand the other way round although their order matters. */
function compareOrder(rules: readonly Placed[]): [string, string][] {
  const pairs: [string, string][] = [];
  let highest = -1;
  rules.forEach((second, at) => {
    // Nothing before this rule comes after it in the other chain: no pair to look at.
    if (second.place > highest) highest = second.place;
    else for (const first of rules.slice(0, at)) if (swapped(first, second)) pairs.push([first.key, second.key]);
  });
  return pairs;
}

function swapped(first: Placed, second: Placed): boolean {
  return first.place > second.place && !sameTarget(first.rule, second.rule) && !disjoint(first.rule, second.rule);
}

function sameTarget(a: Rule, b: Rule): boolean {
  const target = (rule: Rule) =>
    ruleKey({ matches: [], ...(rule.target === undefined ? {} : { target: rule.target }) });
  return target(a) === target(b);
}

/** True when it is certain that no packet matches both rules: other protocols, addresses, interfaces or ports. */
function disjoint(a: Rule, b: Rule): boolean {
  return (
    disjointNames(a.protocol, b.protocol) ||
    disjointAddresses(a.destination, b.destination) ||
    disjointAddresses(a.source, b.source) ||
    disjointInterfaces(a.inInterface, b.inInterface) ||
    disjointInterfaces(a.outInterface, b.outInterface) ||
    disjointPorts(portOf(a, "dport"), portOf(b, "dport")) ||
    disjointPorts(portOf(a, "sport"), portOf(b, "sport"))
  );
}

function disjointNames(a: NameMatch | undefined, b: NameMatch | undefined): boolean {
  if (a === undefined || b === undefined || (a.negated === true && b.negated === true)) return false;
  return (a.negated === true) === (b.negated === true) ? a.value !== b.value : a.value === b.value;
}

function disjointInterfaces(a: NameMatch | undefined, b: NameMatch | undefined): boolean {
  const prefix = [a, b].some((match) => match?.value.endsWith("+") === true);
  return !prefix && disjointNames(a, b);
}

function disjointAddresses(a: AddressMatch | undefined, b: AddressMatch | undefined): boolean {
  if (a === undefined || b === undefined || (a.negated === true && b.negated === true)) return false;
  if (a.negated === true) return containsCIDR(a.cidr, b.cidr);
  if (b.negated === true) return containsCIDR(b.cidr, a.cidr);
  return !containsCIDR(a.cidr, b.cidr) && !containsCIDR(b.cidr, a.cidr);
}

function portOf(rule: Rule, field: "sport" | "dport"): PortMatch | undefined {
  return rule.matches.find(hasPorts)?.[field];
}

function hasPorts(match: Match): match is Extract<Match, { readonly kind: "tcp" | "udp" | "sctp" }> {
  return match.kind === "tcp" || match.kind === "udp" || match.kind === "sctp";
}

function disjointPorts(a: PortMatch | undefined, b: PortMatch | undefined): boolean {
  if (a === undefined || b === undefined || (a.negated === true && b.negated === true)) return false;
  if (a.negated === true) return b.from >= a.from && b.to <= a.to;
  if (b.negated === true) return a.from >= b.from && a.to <= b.to;
  return a.to < b.from || b.to < a.from;
}
