import { type Bitwise, bitwise } from "./bitwise.ts";
import { type Cmp, cmp } from "./cmp.ts";
import { type Counter, counter } from "./counter.ts";
import { type Ct, ct } from "./ct.ts";
import { type Dynset, dynset } from "./dynset.ts";
import { type Fib, fib } from "./fib.ts";
import { type FlowOffload, flowOffload } from "./flow-offload.ts";
import { type Hash, hash } from "./hash.ts";
import { type Immediate, immediate } from "./immediate.ts";
import type { ExpressionKind } from "./kind.ts";
import { type Lookup, lookup } from "./lookup.ts";
import { type Masq, masq } from "./masq.ts";
import { type Meta, meta } from "./meta.ts";
import { type Nat, nat } from "./nat.ts";
import { type Numgen, numgen } from "./numgen.ts";
import { type Objref, objref } from "./objref.ts";
import { type Payload, payload } from "./payload.ts";
import { type Reject, reject } from "./reject.ts";
import { type Unknown, unknown } from "./unknown.ts";

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
