import { NEXT, type RuleVerdict } from "../rule-verdict.ts";
import { isSameWalk, walkKey } from "../same-walk.ts";
import type { Walk } from "../walk.ts";
import { evaluateExpression } from "./expressions/index.ts";
import type { Assumed, NftRuleContext, Result } from "./rule-context.ts";

/** One way that a packet may take through a rule. */
export interface Branch {
  readonly walk: Walk;
  readonly step: RuleVerdict;
  /** The rule went to its end, or gave a verdict. */
  readonly matched: boolean;
  readonly assumed: Assumed | undefined;
}

type Draw = Extract<NonNullable<Result>, { readonly kind: "draw" }>;

/** More numbers than these are not tried one by one. */
const MAX_DRAWN = 0x2_0000;

/** All ways through the rest of a rule. Indistinguishable ones are one, with the sum of their chances. */
export function evaluate(place: NftRuleContext, from: number): readonly Branch[] {
  const { expressions } = place.rule;
  for (const [at, expression] of expressions.entries()) {
    if (at < from) continue;
    const result = evaluateExpression(expression, place);
    if (result === undefined) continue;
    switch (result.kind) {
      case "break":
        return [branch(place, NEXT, false)];
      case "draw":
        return draw(place, result, at + 1);
      case "open":
        if (place.assumed === undefined) return assume(place, result.problem, at + 1);
        continue;
      default:
        return [branch(place, result, true)];
    }
  }
  return [branch(place, NEXT, true)];
}

function branch({ walk, assumed }: NftRuleContext, step: RuleVerdict, matched: boolean): Branch {
  return { walk, step, matched, assumed };
}

function draw(place: NftRuleContext, { modulus, to }: Draw, from: number): readonly Branch[] {
  if (modulus > MAX_DRAWN) throw place.undecidable(`the tracer does not try ${modulus} numbers one by one`);
  const merged = new Map<string, Branch[]>();
  for (let number = 0; number < modulus; number += 1) {
    const copy = copyOf(place, place.walk.probability / modulus);
    copy.registers.loadNumber(to, number);
    for (const one of evaluate(copy, from)) merge(merged, one);
  }
  return [...merged.values()].flat();
}

function merge(merged: Map<string, Branch[]>, one: Branch): void {
  const key = JSON.stringify([one.step, one.matched, walkKey(one.walk)]);
  const alike = merged.get(key) ?? [];
  merged.set(key, alike);
  const same = alike.find(({ walk, assumed }) => isSameWalk(walk, one.walk) && assumed === one.assumed);
  if (same === undefined) alike.push(one);
  else same.walk.probability += one.walk.probability;
}

/** Goes on as if the expression matched, and on another way as if it did not. */
function assume(place: NftRuleContext, problem: string, from: number): readonly Branch[] {
  if (!place.assuming) throw place.undecidable(problem);
  const { probability } = place.walk;
  const matching = evaluate({ ...copyOf(place, probability), assumed: { problem, matched: true } }, from);
  // The rule makes no difference, or another of its matches fails.
  if (matching.every(({ step, walk }) => step === NEXT && isSameWalk(walk, place.walk))) {
    return [branch(place, NEXT, false)];
  }
  const not = branch({ ...copyOf(place, probability), assumed: { problem, matched: false } }, NEXT, false);
  return [...matching, not];
}

function copyOf(place: NftRuleContext, probability: number): NftRuleContext {
  return { ...place, walk: { ...place.walk, probability }, registers: place.registers.copy() };
}
