import { parseRuleWords } from "./parse-rule.ts";
import { renderRule } from "./render-rule.ts";
import type { IPFamily, Rule } from "./rule.ts";
import { tokenize } from "./tokenize.ts";

/**
 * The rule in the one form that the parsers give: what means the same becomes equal (order of connection states, rounded
 * probabilities, host bits, defaults).
 *
 * @throws RuleTextError for a rule that can't be written
 */
export function canonicalRule(rule: Rule, family: IPFamily = "IPv4"): Rule {
  return parseRuleWords(tokenize(renderRule(rule)), 0, family);
}

/** A text that two rules share exactly when they are the same rule: for sets, maps and differences. */
export function ruleKey(rule: Rule): string {
  return renderRule(canonicalRule(rule));
}

/** True when the kernel could not tell the rules apart. */
export function ruleEquals(a: Rule, b: Rule): boolean {
  return a === b || renderRule(a) === renderRule(b) || ruleKey(a) === ruleKey(b);
}
