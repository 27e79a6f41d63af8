import { disjoint } from "../rule/disjoint.ts";
import type { ChainState, Rule, RuleSet, Table } from "../rule/rule.ts";
import { ruleKey } from "./key.ts";

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
