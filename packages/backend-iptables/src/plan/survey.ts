import type { ForwardingPlan } from "@fairlead/core";
import { digestInSteps } from "./digest.ts";
import { markChains } from "./frame.ts";
import { chainsOf, groupChains } from "./group.ts";
import type { RenderContext } from "./settings.ts";

/** What of a plan's chains the kernel has already. */
export interface Survey {
  /** Groups of which the kernel has every chain as it should be. */
  readonly done: ReadonlySet<string>;
  /** Rules in the chains of those groups. */
  readonly rulesDone: number;
  /** Existing group chains that the plan has no use for. */
  readonly stale: ReadonlySet<string>;
}

/**
 * Compares the chains that a plan needs with those that there are; yields after each of them.
 *
 * @param existing the kernel's group chains with the digests of their rules
 */
export function* survey(
  plan: ForwardingPlan,
  context: RenderContext,
  existing: ReadonlyMap<string, string>,
): Generator<void, Survey> {
  if (existing.size === 0) return { done: new Set(), rulesDone: 0, stale: new Set() };
  const stale = new Set(existing.keys());
  for (const { chain } of markChains(context)) stale.delete(chain);
  const done = new Set<string>();
  let rulesDone = 0;
  for (const group of plan.groups.values()) {
    let [rules, same] = [0, true];
    for (const chain of chainsOf(groupChains(group, context))) {
      stale.delete(chain.chain);
      rules += chain.rules.length;
      same &&= existing.get(chain.chain) === (yield* digestInSteps(chain.rules));
      yield;
    }
    if (!same) continue;
    done.add(group.id);
    rulesDone += rules;
  }
  return { done, rulesDone, stale };
}
