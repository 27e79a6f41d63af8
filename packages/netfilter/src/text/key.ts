import { RuleTextError } from "../rule/errors.ts";
import { Problem } from "../rule/problem.ts";
import type { IPFamily, Rule } from "../rule/rule.ts";
import { parseRuleWords } from "./parse-rule.ts";
import { renderRule } from "./render-rule.ts";
import { tokenize } from "./tokenize.ts";

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

/** As `isWritableKey`, for one who has no use for the key, which costs as much. */
export function isWritable(rule: Rule): boolean {
  return isWritableKey(ruleKey(rule));
}

/** True when the kernel cannot distinguish the rules. */
export function ruleEquals(a: Rule, b: Rule): boolean {
  return a === b || ruleKey(a) === ruleKey(b);
}
