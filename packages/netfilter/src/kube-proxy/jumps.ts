import type { Command, Rule } from "../rule/rule.ts";
import { ruleKey } from "../text/key.ts";

/** The rules of a built-in chain that lead to a proxy's chains. */
export interface JumpRules {
  /** Those that stand together, in their order, where the first of them stood, or at the chain's top. */
  readonly first: readonly Rule[];
  /** Those at the chain's end. Default: there are none. */
  readonly last?: readonly Rule[];
  /** Other rules that must not stand in the chain. Default: no rule. */
  readonly isUnwanted?: (rule: Rule) => boolean;
}

/**
 * Makes the jumps stand once and in their order in a built-in chain, and unwanted rules not at all. Where it is so
 * already, nothing is touched, whatever others have put between and around them; else all copies go and come back.
 */
export function repairJumps(
  chain: string,
  { first, last = [], isUnwanted = () => false }: JumpRules,
  existing: readonly Rule[],
): readonly Command[] {
  const wanted = [...first, ...last].map(ruleKey);
  const present = existing.map((rule) => ({ rule, key: ruleKey(rule) }));
  const ours = present.filter(({ rule, key }) => wanted.includes(key) || isUnwanted(rule));
  if (ours.map(({ key }) => key).join("\n") === wanted.join("\n")) return [];
  const anchor = ours.find(({ key }) => wanted.indexOf(key) < first.length && wanted.includes(key));
  // Those of ours before it are gone by then.
  const position = anchor === undefined ? 1 : present.indexOf(anchor) - ours.indexOf(anchor) + 1;
  return [
    ...ours.map(({ rule }): Command => ({ kind: "delete", chain, rule })),
    ...first.map((rule, index): Command => ({ kind: "insert", chain, position: position + index, rule })),
    ...last.map((rule): Command => ({ kind: "append", chain, rule })),
  ];
}
