import { type IPFamily, type Rule, readRule, renderRule, ruleKey } from "@fairlead/netfilter";
import type { FixedChain } from "./plan/fixed.ts";

type EndingTarget = NonNullable<Rule["target"]>["kind"];

/** After a rule with such a target and without a condition no packet meets the rules behind it. */
const ENDS: ReadonlySet<EndingTarget> = new Set<EndingTarget>([
  "accept",
  "dnat",
  "drop",
  "goto",
  "masquerade",
  "redirect",
  "reject",
  "return",
]);

/**
 * Compares a chain with what it must hold. Rules of others are left alone, unless one of them ends a chain of ours
 * before our last rule. Yields after each rule.
 *
 * @param found its rules as the tools print them; undefined: there is no such chain
 * @returns in words what differs; undefined: nothing
 */
export function* chainDifference(
  { rules, last, isOurs }: FixedChain,
  found: readonly string[] | undefined,
  family: IPFamily,
): Generator<void, string | undefined> {
  if (found === undefined) return "is not there";
  const wanted = new Map<string, Rule>();
  for (const rule of [...rules, ...last]) {
    wanted.set(renderRule(rule), rule);
    yield;
  }
  const known = yield* knownRules(found, wanted, family);
  const present = new Set(known.filter((text) => text !== undefined));
  if (present.size < wanted.size) return "lacks rules";
  if (!isOurs || present.size === 0) return undefined;
  const order = [...present];
  if (last.some((rule, at) => renderRule(rule) !== order[order.length - last.length + at])) {
    return "has its rules in another order";
  }
  const end = known.indexOf(order.at(-1));
  const isEnded = found.slice(0, end).some((text, at) => known[at] === undefined && ends(readRule(text, 0, family)));
  return isEnded ? "has a rule of another program that ends it before its own rules" : undefined;
}

/**
 * For each rule found the text of the wanted one that it is; undefined: it is not ours. The texts are nearly always
 * equal; where one is missing, another version of the tools may have printed the same rule in another way.
 */
function* knownRules(
  found: readonly string[],
  wanted: ReadonlyMap<string, Rule>,
  family: IPFamily,
): Generator<void, readonly (string | undefined)[]> {
  const texts = new Set(found);
  const byKey = new Map<string, string>();
  for (const [text, rule] of wanted) {
    if (!texts.has(text)) byKey.set(ruleKey(rule), text);
    yield;
  }
  const known: (string | undefined)[] = [];
  for (const text of found) {
    const inOtherWords = () => (byKey.size === 0 ? undefined : byKey.get(ruleKey(readRule(text, 0, family))));
    known.push(wanted.has(text) ? text : inOtherWords());
    yield;
  }
  return known;
}

function ends({ source, destination, inInterface, outInterface, protocol, fragment, matches, target }: Rule): boolean {
  if (target === undefined || !ENDS.has(target.kind)) return false;
  const conditions = [source, destination, inInterface, outInterface, protocol, fragment];
  return conditions.every((one) => one === undefined) && matches.every(({ kind }) => kind === "comment");
}
