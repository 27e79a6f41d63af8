import { checkCIDR, checkInterface, checkProtocol } from "../rule/check.ts";
import type { Match } from "../rule/matches/index.ts";
import { renderMatch } from "../rule/matches/index.ts";
import { not } from "../rule/options.ts";
import type { Rule } from "../rule/rule.ts";
import { renderTarget } from "../rule/targets/index.ts";

/**
 * The rule as iptables-save 1.8.9 prints it after `-A CHAIN`, each word with a leading space; "" for a rule that
 * matches everything and does nothing.
 *
 * @throws RuleTextError when a text in it could not be read back as the same rule
 */
export function ruleWords(rule: Rule): string {
  let text = "";
  if (rule.source !== undefined) text += `${not(rule.source)} -s ${checkCIDR(rule.source.cidr)}`;
  if (rule.destination !== undefined) text += `${not(rule.destination)} -d ${checkCIDR(rule.destination.cidr)}`;
  if (rule.inInterface !== undefined) text += `${not(rule.inInterface)} -i ${checkInterface(rule.inInterface.value)}`;
  if (rule.outInterface !== undefined)
    text += `${not(rule.outInterface)} -o ${checkInterface(rule.outInterface.value)}`;
  if (rule.protocol !== undefined) text += `${not(rule.protocol)} -p ${checkProtocol(rule.protocol.value)}`;
  if (rule.fragment !== undefined) text += `${not(rule.fragment)} -f`;
  text = rule.matches.reduce(withMatch, text);
  if (rule.target !== undefined) text += renderTarget(rule.target);
  return text;
}

/** An iterator would make an object for each step, and a large sync has hundreds of thousands of rules. */
function withMatch(text: string, match: Match): string {
  return text + renderMatch(match);
}

/**
 * The rule as iptables-save 1.8.9 prints it after `-A CHAIN `; "" for a rule that matches everything and does nothing.
 *
 * @throws RuleTextError when a text in it could not be read back as the same rule
 */
export function renderRule(rule: Rule): string {
  return ruleWords(rule).slice(1);
}
