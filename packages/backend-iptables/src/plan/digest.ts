import { createHash, hash } from "node:crypto";
import { type RuleList, renderRule } from "@fairlead/netfilter";

/** Stands for the rules of a chain, given as iptables-save prints them less `-A CHAIN `. */
export function digestOf(rules: readonly string[]): string {
  return hash("sha256", rules.join("\n"), "base64");
}

/** The same of rules that are yet to be printed; yields after each few of them. */
export function* digestInSteps(rules: RuleList): Generator<void, string> {
  if (rules.length <= RULES_AT_ONCE) return digestOf(Array.from(rules, renderRule));
  const digest = createHash("sha256");
  let count = 0;
  for (const rule of rules) {
    digest.update(count === 0 ? renderRule(rule) : `\n${renderRule(rule)}`);
    if (++count % RULES_AT_ONCE === 0) yield;
  }
  return digest.digest("base64");
}

const RULES_AT_ONCE = 16;
