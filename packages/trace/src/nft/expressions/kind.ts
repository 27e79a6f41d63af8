import type { Expression } from "@fairlead/netfilter/nft";
import type { NftRuleContext, Result } from "../rule-context.ts";

export type ExpressionOf<Kind extends Expression["kind"]> = Extract<Expression, { readonly kind: Kind }>;

/** What an expression of one kind does: loads registers, changes the walk, ends the rule or gives a verdict. */
export type Evaluate<Kind extends Expression["kind"]> = (
  expression: ExpressionOf<Kind>,
  place: NftRuleContext,
) => Result;
