import type { Expression } from "@fairlead/netfilter/nft";
import type { NftRuleContext, Result } from "../rule-context.ts";
import { bitwise } from "./bitwise.ts";
import { cmp } from "./cmp.ts";
import { ct } from "./ct.ts";
import { dynset } from "./dynset.ts";
import { fib } from "./fib.ts";
import { flowOffload } from "./flow-offload.ts";
import { hash } from "./hash.ts";
import { immediate } from "./immediate.ts";
import type { Evaluate } from "./kind.ts";
import { lookup } from "./lookup.ts";
import { masq } from "./masq.ts";
import { meta } from "./meta.ts";
import { nat } from "./nat.ts";
import { numgen } from "./numgen.ts";
import { objref } from "./objref.ts";
import { payload } from "./payload.ts";
import { reject } from "./reject.ts";
import { unknown } from "./unknown.ts";

/** One row for each kind. */
const evaluators: { readonly [Kind in Expression["kind"]]: Evaluate<Kind> } = {
  bitwise,
  cmp,
  counter: () => undefined,
  ct,
  dynset,
  fib,
  "flow-offload": flowOffload,
  hash,
  immediate,
  lookup,
  masq,
  meta,
  nat,
  numgen,
  objref,
  payload,
  reject,
  unknown,
};

/** @throws TraceError for what can't be decided, or what the kernel would refuse at this place */
export function evaluateExpression(expression: Expression, place: NftRuleContext): Result {
  // The table has each kind by its own name, which the type system can't follow.
  return (evaluators[expression.kind] as Evaluate<Expression["kind"]>)(expression as never, place);
}
