import { type Assumption, type Outcome, withoutOthersMasquerade } from "@fairlead/trace";
import type { Followed } from "./followed.ts";
import { type OutcomeShares, sameWays, tracedWays } from "./ways.ts";

/** How what becomes of a packet compares with what is wanted. */
export type Comparison =
  | { readonly kind: "same" }
  /** Only that rules outside a service proxy's chains masquerade it, as pod networks do. */
  | { readonly kind: "masqueraded"; readonly ways: OutcomeShares }
  | { readonly kind: "different"; readonly ways: OutcomeShares }
  /** It depends on what cannot be decided here. */
  | { readonly kind: "unknown"; readonly problem: string };

/**
 * Compares a packet's ways with those that are wanted. Rules that cannot be decided here make no difference where all
 * that they may do leads to the wanted ends; where only some of it does, the answer is "unknown", never "different".
 */
export function compared(followed: Followed, wanted: OutcomeShares): Comparison {
  if ("problem" in followed) return { kind: "unknown", problem: followed.problem };
  const { outcomes } = followed;
  const agrees = (some: readonly Outcome[]) => sameWays(tracedWays(some), wanted);
  const agreesButForOthers = (some: readonly Outcome[]) => agrees(some) || agrees(withoutOthersMasquerade(some));
  const open = assumptionsOf(outcomes);
  const cases = casesOf(outcomes, open.slice(0, MOST_OPEN));
  if (cases.every(agrees)) return { kind: "same" };
  const ways = tracedWays(outcomes);
  if (cases.every(agreesButForOthers)) return { kind: "masqueraded", ways };
  const [first] = open;
  const isOpen = first !== undefined && (open.length > MOST_OPEN || cases.some(agreesButForOthers));
  return isOpen ? { kind: "unknown", problem: `it depends on a rule: ${first.problem}` } : { kind: "different", ways };
}

/** Each doubles the cases. */
const MOST_OPEN = 6;

/** The rules that cannot be decided, each once. */
function assumptionsOf(outcomes: readonly Outcome[]): readonly Assumption[] {
  return [...new Map(outcomes.flatMap(({ assumed = [] }) => assumed).map((one) => [ruleKey(one), one])).values()];
}

function ruleKey({ hook, table, chain, index }: Assumption): string {
  return `${hook} ${table} ${chain} ${index}`;
}

/** The outcomes for each way in which these assumptions may turn out. */
function casesOf(outcomes: readonly Outcome[], open: readonly Assumption[]): readonly (readonly Outcome[])[] {
  const keys = open.map(ruleKey);
  const cases = Array.from({ length: 2 ** keys.length }, (_, bits) =>
    outcomes.filter(({ assumed = [] }) =>
      assumed.every((one) => {
        const at = keys.indexOf(ruleKey(one));
        return at < 0 || one.matched === ((bits & (1 << at)) !== 0);
      }),
    ),
  );
  return cases.filter((some) => some.length > 0);
}
