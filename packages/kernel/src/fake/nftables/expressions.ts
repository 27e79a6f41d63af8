import { type Expression, lengthOf, type NftSet } from "@fairlead/netfilter/nft";
import type { FakeTable } from "./state.ts";
import { chainOf, verdictOf } from "./uses.ts";
import type { Refused } from "./work.ts";

/** Registers of 32 bits. */
const REGISTERS = 16;

/** What the kernel refuses when it takes a rule in: what it refers to is not there, or not of that kind. */
export function checkExpressions(table: FakeTable, expressions: readonly Expression[]): Refused {
  for (const expression of expressions) {
    const refused = checkExpression(table, expression);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

function checkExpression(table: FakeTable, expression: Expression): Refused {
  if (expression.kind === "lookup") return checkLookup(table, expression);
  if (expression.kind === "flow-offload") return table.flowtables.has(expression.flowtable) ? undefined : "ENOENT";
  if (expression.kind === "dynset") return checkDynset(table, expression);
  return checkTarget(table, chainOf(verdictOf(expression)));
}

/** Only what is no base chain can be jumped to. */
export function checkTarget(table: FakeTable, name: string | undefined): Refused {
  if (name === undefined) return undefined;
  const chain = table.chains.get(name);
  if (chain === undefined) return "ENOENT";
  return chain.base === undefined ? undefined : "ENOTSUP";
}

function checkLookup(
  table: FakeTable,
  { set: name, from, to, inverted }: Extract<Expression, { readonly kind: "lookup" }>,
): Refused {
  const set = table.sets.get(name)?.facts;
  if (set === undefined) return "ENOENT";
  if (!fits(from, lengthOf(set.key))) return "ERANGE";
  if (to === undefined) return set.data === undefined && set.objects === undefined ? undefined : "EINVAL";
  if (inverted || set.data === undefined) return "EINVAL";
  if ((to === "verdict") !== (set.data === "verdict")) return "EINVAL";
  return to === "verdict" || set.data === "verdict" || fits(to, lengthOf(set.data)) ? undefined : "ERANGE";
}

function checkDynset(
  table: FakeTable,
  { set: name, from, value, timeout }: Extract<Expression, { readonly kind: "dynset" }>,
): Refused {
  const set = table.sets.get(name)?.facts;
  if (set === undefined) return "ENOENT";
  if (!isHashTable(set)) return "ENOTSUP";
  if (set.flags.includes("constant")) return "EBUSY";
  if (timeout !== undefined && !set.flags.includes("timeout")) return "ENOTSUP";
  if (!fits(from, lengthOf(set.key))) return "ERANGE";
  return (value !== undefined) === (set.data !== undefined) ? undefined : "EINVAL";
}

/** Of the kinds of sets only that one takes elements of packets; one of a fixed size is another kind. */
function isHashTable({ flags, size }: Omit<NftSet, "elements">): boolean {
  if (flags.includes("interval")) return false;
  return size === undefined || flags.includes("dynamic") || flags.includes("timeout");
}

function fits(from: number, bytes: number): boolean {
  return from + Math.ceil(bytes / 4) <= REGISTERS;
}
