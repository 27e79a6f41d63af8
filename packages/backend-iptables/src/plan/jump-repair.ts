import { type Command, type Rule, ruleKey } from "@fairlead/netfilter";
import { remove } from "./commands.ts";

/**
 * Makes `wanted` stand once and in its order in a built-in chain. Where it already does, nothing is touched, whatever
 * others have put around it; else all copies go and the rules come back where the first of them stood, or at the top.
 */
export function repairJumps(chain: string, wanted: readonly Rule[], existing: readonly Rule[]): readonly Command[] {
  const texts = wanted.map(ruleKey);
  const present = existing.map(ruleKey);
  const ours = present.filter((text) => texts.includes(text));
  if (ours.join("\n") === texts.join("\n")) return [];
  const first = present.findIndex((text) => texts.includes(text));
  const position = first === -1 ? 1 : first + 1;
  return [
    ...existing.filter((_, index) => texts.includes(present[index] ?? "")).map((rule) => remove(chain, rule)),
    ...wanted.map((rule, index): Command => ({ kind: "insert", chain, position: position + index, rule })),
  ];
}

/** Puts a rule to the top of a chain that has it nowhere. */
export function ensureRule(chain: string, rule: Rule, existing: readonly Rule[]): readonly Command[] {
  const text = ruleKey(rule);
  if (existing.some((other) => ruleKey(other) === text)) return [];
  return [{ kind: "insert", chain, position: 1, rule }];
}
