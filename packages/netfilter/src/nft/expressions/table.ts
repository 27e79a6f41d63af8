/** All expressions: one row for each kind. */

import {
  type Counter,
  counter,
  type FlowOffload,
  flowOffload,
  type Masq,
  masq,
  type Nat,
  nat,
  type Objref,
  objref,
  type Reject,
  reject,
  type Unknown,
  unknown,
} from "./actions.ts";
import type { ExpressionKind } from "./kind.ts";
import {
  type Ct,
  ct,
  type Fib,
  fib,
  type Hash,
  hash,
  type Meta,
  meta,
  type Numgen,
  numgen,
  type Payload,
  payload,
} from "./loads.ts";
import {
  type Bitwise,
  bitwise,
  type Cmp,
  cmp,
  type Dynset,
  dynset,
  type Immediate,
  immediate,
  type Lookup,
  lookup,
} from "./operations.ts";

/** One step of a rule, as the kernel takes it. */
export type Expression =
  | Bitwise
  | Cmp
  | Counter
  | Ct
  | Dynset
  | Fib
  | FlowOffload
  | Hash
  | Immediate
  | Lookup
  | Masq
  | Meta
  | Nat
  | Numgen
  | Objref
  | Payload
  | Reject
  | Unknown;

type Kinds = { readonly [Kind in Expression["kind"]]: ExpressionKind<Extract<Expression, { readonly kind: Kind }>> };

/** One row for each kind. */
export const expressionKinds: Kinds = {
  bitwise,
  cmp,
  counter,
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

/** The kind of an expression. The table has it by the same name, which the type system can't follow. */
export function kindOf<E extends Expression>(expression: E): ExpressionKind<E> {
  return expressionKinds[expression.kind] as unknown as ExpressionKind<E>;
}
