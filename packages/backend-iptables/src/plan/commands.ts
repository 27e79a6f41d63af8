import { type ChainFill, type Command, type Rule, ruleKey } from "@fairlead/netfilter";
import type { ChainRules } from "./chain-rules.ts";
import { deletionRank } from "./group-names.ts";

/** Restore commands, as data. */

export function append(chain: string, rule: Rule): Command {
  return { kind: "append", chain, rule };
}

export function remove(chain: string, rule: Rule): Command {
  return { kind: "delete", chain, rule };
}

/** Puts a rule to the top of a chain that has it nowhere. */
export function ensureRule(chain: string, rule: Rule, existing: readonly Rule[]): readonly Command[] {
  const text = ruleKey(rule);
  if (existing.some((other) => ruleKey(other) === text)) return [];
  return [{ kind: "insert", chain, position: 1, rule }];
}

/** Gives chains their rules, whatever they held. */
export function* fillChains(chains: Iterable<ChainRules>): Generator<ChainFill> {
  for (const { chain, rules } of chains) yield { kind: "fill", chain, rules, make: true };
}

/** Gives chains that were just made their rules. */
export function* appendRules(chains: Iterable<ChainRules>): Generator<ChainFill> {
  for (const { chain, rules } of chains) yield { kind: "fill", chain, rules, make: false };
}

/**
 * In the order in which they can be deleted one after the other; sorted by nothing else, as there may be a hundred
 * thousand.
 */
export function inDeletionOrder(chains: Iterable<string>): string[] {
  const byRank = [...Map.groupBy(chains, deletionRank)].sort(([a], [b]) => a - b);
  return byRank.flatMap(([, some]) => some);
}
