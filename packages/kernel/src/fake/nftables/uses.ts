import type { Expression, SetElement, Verdict } from "@fairlead/netfilter/nft";
import type { Journal } from "./journal.ts";
import type { FakeSet, FakeTable } from "./state.ts";

/** The chain to which an expression or an element leads. */
export function chainOf(verdict: Verdict | string | undefined): string | undefined {
  return typeof verdict === "object" && "chain" in verdict ? verdict.chain : undefined;
}

export function verdictOf(expression: Expression): Verdict | undefined {
  return expression.kind === "immediate" && "verdict" in expression ? expression.verdict : undefined;
}

/** The set that an expression looks into or writes to. */
function setOf(expression: Expression): string | undefined {
  if (expression.kind === "objref") return "map" in expression ? expression.map : undefined;
  return expression.kind === "lookup" || expression.kind === "dynset" ? expression.set : undefined;
}

/** Counts what expressions refer to, or counts it no more. */
export function countExpressions(
  journal: Journal,
  table: FakeTable,
  expressions: readonly Expression[],
  by: 1 | -1,
): void {
  for (const expression of expressions) {
    count(journal, table.chains.get(chainOf(verdictOf(expression)) ?? ""), by);
    const set = table.sets.get(setOf(expression) ?? "");
    count(journal, set, by);
    if (set !== undefined && expression.kind === "dynset") limit(journal, set);
  }
}

/** Counts the chain to which an element leads, or counts it no more. */
export function countElement(journal: Journal, table: FakeTable, { value }: SetElement, by: 1 | -1): void {
  count(journal, table.chains.get(chainOf(value) ?? ""), by);
}

/** Most elements of a set that packets change, where none is given (nft_dynset_init). */
const LIMIT = 65_535;

function limit(journal: Journal, set: FakeSet): void {
  const before = set.facts;
  if (before.size !== undefined) return;
  set.facts = { ...before, size: LIMIT };
  journal.did(() => {
    set.facts = before;
  });
}

function count(journal: Journal, used: { uses: number } | undefined, by: 1 | -1): void {
  if (used === undefined) return;
  used.uses += by;
  journal.did(() => {
    used.uses -= by;
  });
}
