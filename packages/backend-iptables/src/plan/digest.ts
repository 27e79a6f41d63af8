import { type RuleList, renderRule, sha256, startDigest } from "@fairlead/netfilter";

/** Stands for the rules of a chain, given as iptables-save prints them less `-A CHAIN `. */
export function digestOf(rules: readonly string[]): string {
  return btoa(sha256(rules.join("\n")));
}

/** The same of rules that are yet to be printed; yields after each few of them. */
export function* digestInSteps(rules: RuleList): Generator<void, string> {
  if (rules.length <= RULES_AT_ONCE) return digestOf(Array.from(rules, renderRule));
  const digest = startDigest();
  let count = 0;
  for (const rule of rules) {
    digest.update(count === 0 ? renderRule(rule) : `\n${renderRule(rule)}`);
    if (++count % RULES_AT_ONCE === 0) yield;
  }
  return digest.base64();
}

const RULES_AT_ONCE = 16;
