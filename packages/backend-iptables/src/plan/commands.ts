import type { ChainFill, Command, Rule } from "@fairlead/netfilter";
import type { ChainRules } from "./chain-rules.ts";
import { deletionRank } from "./group-names.ts";

/** Restore commands, as data. */

export function append(chain: string, rule: Rule): Command {
  return { kind: "append", chain, rule };
}

export function remove(chain: string, rule: Rule): Command {
  return { kind: "delete", chain, rule };
}

/** `:CHAIN - [0:0]`: makes the chain, or empties it where it exists. */
export function emptyChain(chain: string): Command {
  return { kind: "chain", chain };
}

/** Gives chains their rules, whatever they held. */
export function* fillChains(chains: Iterable<ChainRules>): Generator<ChainFill> {
  for (const { chain, rules } of chains) yield { kind: "fill", chain, rules, make: true };
}

/** Gives chains that were just made their rules. */
export function* appendRules(chains: Iterable<ChainRules>): Generator<ChainFill> {
  for (const { chain, rules } of chains) yield { kind: "fill", chain, rules, make: false };
}

/** Deletes chains that nothing else refers to. They are emptied first, so they may refer to one another. */
export function* deleteChains(chains: readonly string[]): Generator<Command> {
  for (const chain of chains) yield emptyChain(chain);
  for (const chain of chains) yield { kind: "delete-chain", chain };
}

/**
 * In the order in which they can be deleted one after the other; sorted by nothing else, as there may be a hundred
 * thousand.
 */
export function inDeletionOrder(chains: Iterable<string>): string[] {
  const byRank = [...Map.groupBy(chains, deletionRank)].sort(([a], [b]) => a - b);
  return byRank.flatMap(([, some]) => some);
}
