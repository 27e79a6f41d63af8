import type { Expression, NftRule } from "@fairlead/netfilter/nft";
import { leavesForGood } from "../rule-verdict.ts";
import { isSameWalk } from "../same-walk.ts";
import type { Walk } from "../walk.ts";
import type { Branch } from "./evaluate.ts";

/** By chain and place: a plan has one rule object at many places. */
const known = new WeakMap<readonly NftRule[], Map<number, number>>();

/** How many rules behind one that draws say the same as it does; 0 for one that does not draw. */
export function repeats(rules: readonly NftRule[], index: number): number {
  const rule = rules[index];
  if (rule === undefined || !rule.expressions.some(draws)) return 0;
  const counts = known.get(rules) ?? new Map<number, number>();
  known.set(rules, counts);
  const before = counts.get(index);
  if (before !== undefined) return before;
  const text = ruleText(rule);
  let count = 0;
  while (ruleText(rules[index + count + 1]) === text) count += 1;
  counts.set(index, count);
  return count;
}

function draws({ kind }: Expression): boolean {
  return kind === "numgen" || kind === "hash";
}

function ruleText(rule: NftRule | undefined): string | undefined {
  return rule && JSON.stringify(rule.expressions);
}

/**
 * What all of a rule and the equal ones behind it come to, where a draw that they make nothing of leads from each to
 * the next: each draws from what is left, and sends the same part of it to the same places.
 *
 * @param branches of the first rule
 * @param walk as it came to it
 * @param times how many rules behind it are equal
 * @returns the same branches where that is not so
 */
export function drawnAgain(branches: readonly Branch[], walk: Walk, times: number): readonly Branch[] {
  const going = branches.filter(({ step }) => step.kind === "next");
  const [again] = going;
  const { probability } = walk;
  const isAgain =
    times > 0 &&
    going.length === 1 &&
    again !== undefined &&
    again.walk !== walk &&
    isSameWalk(again.walk, walk) &&
    branches.every((one) => one === again || leavesForGood(one.step));
  if (!isAgain) return branches;
  const left = again.walk.probability / probability;
  const all = (1 - left ** (times + 1)) / (1 - left);
  return branches.map((one) => {
    const walked =
      one === again
        ? { probability: probability * left ** (times + 1), index: walk.index + times }
        : { probability: one.walk.probability * all };
    return { ...one, walk: { ...one.walk, ...walked } };
  });
}
