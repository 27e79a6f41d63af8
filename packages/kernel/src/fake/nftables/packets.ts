import { elementKey, type SetElement } from "@fairlead/netfilter/nft";
import { timed } from "./sets.ts";
import { type FakeSet, isThere } from "./state.ts";

/**
 * What a rule that updates a dynamic set does (nft_dynset_eval): renews what is there, and adds what is not.
 *
 * @returns false: there is no room for it
 */
export function remember(set: FakeSet, element: SetElement, now: number): boolean {
  if (!set.facts.flags.includes("dynamic")) throw new Error(`set ${set.facts.name}: packets cannot change it`);
  const key = elementKey(element);
  const there = set.elements.get(key);
  const known = there !== undefined && isThere(there, now);
  const { size = Number.POSITIVE_INFINITY } = set.facts;
  if (!known && [...set.elements.values()].filter((one) => isThere(one, now)).length >= size) return false;
  // A map keeps the value that it has.
  set.elements.set(key, timed(set.facts, known ? { ...element, ...keptValue(there.element) } : element, now));
  return true;
}

function keptValue({ value }: SetElement): Pick<SetElement, "value"> {
  return value === undefined ? {} : { value };
}
