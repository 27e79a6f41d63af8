import { elementKey, type Hex, lengthOf, type NftSet, type SetElement } from "@fairlead/netfilter/nft";
import { isTooLong } from "./chains.ts";
import { checkTarget } from "./expressions.ts";
import { type FakeElement, type FakeSet, type FakeTable, isThere } from "./state.ts";
import { chainOf, countElement } from "./uses.ts";
import type { MessageContext, Refused } from "./work.ts";

type Facts = Omit<NftSet, "elements">;

export function addSet(work: MessageContext, table: FakeTable, facts: Facts): Refused {
  if (isTooLong(facts.name)) return "ERANGE";
  if (facts.timeout !== undefined && !facts.flags.includes("timeout")) return "EINVAL";
  const there = table.sets.get(facts.name);
  if (there === undefined) {
    work.journal.set(table.sets, facts.name, { facts, elements: new Map(), uses: 0 });
    return undefined;
  }
  if (kindOf(there.facts) !== kindOf(facts)) return "EEXIST";
  const { timeout: _, ...before } = there.facts;
  const { timeout, size } = facts;
  const now = { ...before, ...(timeout !== undefined && { timeout }), ...(size !== undefined && { size }) };
  work.journal.set(table.sets, facts.name, { ...there, facts: now });
  return undefined;
}

/** What has to be equal for a set to count as the same. */
function kindOf({ key, data, flags }: Facts): string {
  return JSON.stringify([key, data, [...flags].sort()]);
}

export function deleteSet(work: MessageContext, table: FakeTable, name: string): Refused {
  const set = table.sets.get(name);
  if (set === undefined) return "ENOENT";
  if (set.uses > 0) return "EBUSY";
  for (const { element } of set.elements.values()) countElement(work.journal, table, element, -1);
  work.journal.deleteInOrder(table.sets, name);
  return undefined;
}

export function flushSet(work: MessageContext, table: FakeTable, name: string): Refused {
  const set = table.sets.get(name);
  if (set === undefined) return "ENOENT";
  const before = set.elements;
  for (const { element } of before.values()) countElement(work.journal, table, element, -1);
  set.elements = new Map();
  work.journal.did(() => {
    set.elements = before;
  });
  return undefined;
}

export function deleteElements(work: MessageContext, table: FakeTable, name: string, keys: readonly Hex[]): Refused {
  const set = table.sets.get(name);
  if (set === undefined) return "ENOENT";
  for (const key of keys) {
    if (bytesOf(key) !== lengthOf(set.facts.key)) return "EINVAL";
    const there = set.elements.get(key);
    if (there === undefined || !isThere(there, work.now)) return "ENOENT";
    work.journal.delete(set.elements, key);
    countElement(work.journal, table, there.element, -1);
  }
  return undefined;
}

export function addElements(
  work: MessageContext,
  table: FakeTable,
  name: string,
  elements: readonly SetElement[],
): Refused {
  const set = table.sets.get(name);
  if (set === undefined) return "ENOENT";
  for (const element of elements) {
    const refused = checkElement(table, set.facts, element) ?? addElement(work, table, set, element);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

function checkElement(table: FakeTable, { key, data, flags }: Facts, element: SetElement): Refused {
  const { value, timeout, expires } = element;
  if ((timeout !== undefined || expires !== undefined) && !flags.includes("timeout")) return "EINVAL";
  if (bytesOf(element.key) !== lengthOf(key)) return "EINVAL";
  if (data === undefined || element.intervalEnd) return value === undefined ? undefined : "EINVAL";
  if (value === undefined || (typeof value === "string") !== (data !== "verdict")) return "EINVAL";
  if (typeof value === "string") return data !== "verdict" && bytesOf(value) === lengthOf(data) ? undefined : "EINVAL";
  return checkTarget(table, chainOf(value));
}

function addElement(work: MessageContext, table: FakeTable, set: FakeSet, added: SetElement): Refused {
  const key = elementKey(added);
  const there = set.elements.get(key);
  const lifetime = added.timeout ?? set.facts.timeout ?? 0;
  if (added.expires !== undefined && lifetime === 0) return "ENOTSUP";
  if ((added.expires ?? 0) > lifetime) return "ERANGE";
  if (there !== undefined && isThere(there, work.now)) return sameValue(there.element, added) ? undefined : "EEXIST";
  const { size } = set.facts;
  if (size !== undefined && set.elements.size >= size) return "ENFILE";
  work.journal.set(set.elements, key, timed(set.facts, added, work.now));
  countElement(work.journal, table, added, 1);
  if (chainOf(added.value) !== undefined && set.uses > 0) work.mustBeFollowed(table);
  return undefined;
}

/** An element of a set with timeouts goes when its own time is over, or that of the set. */
export function timed({ timeout: ofSet = 0 }: Facts, added: SetElement, now: number): FakeElement {
  const { timeout, expires, ...element } = added;
  const lifetime = timeout ?? ofSet;
  if (lifetime === 0) return { element };
  const own = timeout !== undefined && timeout !== ofSet ? { timeout } : {};
  return { element: { ...element, ...own }, until: now + (expires || lifetime) };
}

function sameValue(one: SetElement, other: SetElement): boolean {
  return JSON.stringify(one.value) === JSON.stringify(other.value);
}

function bytesOf(hex: Hex): number {
  return hex.length / 2;
}
