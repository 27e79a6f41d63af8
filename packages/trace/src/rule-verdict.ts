/** What a rule makes of the packet's way. */
export type RuleVerdict =
  /** The next rule. */
  | { readonly kind: "next" }
  | { readonly kind: "return" }
  | { readonly kind: "call"; readonly chain: string; readonly goto: boolean }
  /** Ends the chains of one table at this hook. */
  | { readonly kind: "accept" }
  | { readonly kind: "drop" }
  | { readonly kind: "reject"; readonly with: string };

export const NEXT: RuleVerdict = { kind: "next" };
export const ACCEPT: RuleVerdict = { kind: "accept" };

/** Whether the way on is the same from wherever in the chain it was said. */
export function leavesForGood(step: RuleVerdict): boolean {
  return step.kind !== "next" && (step.kind !== "call" || step.goto);
}
