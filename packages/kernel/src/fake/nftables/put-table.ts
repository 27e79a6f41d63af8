import type { NftTable } from "@fairlead/netfilter/nft";
import { Journal } from "./journal.ts";
import { timed } from "./sets.ts";
import { emptyTable, type FakeTable } from "./state.ts";
import { countElement, countExpressions } from "./uses.ts";

/** A whole table as the fake holds it, with what refers to what counted. */
export function putTable(table: NftTable, now: number, nextHandle: () => bigint): FakeTable {
  const made = emptyTable(table.family, table.name, table.comment);
  for (const [name, { rules, ...chain }] of table.chains) {
    made.chains.set(name, { ...chain, uses: 0, rules: rules.map((rule) => ({ ...rule, handle: nextHandle() })) });
  }
  for (const [name, { elements, ...facts }] of table.sets) {
    const kept = Array.from(elements, ([key, element]) => [key, timed(facts, element, now)] as const);
    made.sets.set(name, { facts, uses: 0, elements: new Map(kept) });
  }
  for (const [name, flowtable] of table.flowtables ?? []) made.flowtables.set(name, flowtable);
  // Nothing of this is taken back.
  const journal = new Journal();
  for (const { rules } of made.chains.values()) {
    for (const { expressions } of rules) countExpressions(journal, made, expressions, 1);
  }
  for (const { elements } of made.sets.values()) {
    for (const { element } of elements.values()) countElement(journal, made, element, 1);
  }
  return made;
}
