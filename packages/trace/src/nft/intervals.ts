import type { Hex, NftSet, SetElement } from "@fairlead/netfilter/nft";

/**
 * Looks keys up in a set of intervals: one begins with an element and goes to before the next that is an end, or to the
 * last key of all.
 */
export function intervalsOf(set: NftSet): (key: Hex) => SetElement | undefined {
  const bounds = [...set.elements.values()].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  return (key) => {
    const below = bounds.findLast((bound) => bound.key <= key);
    return below === undefined || below.intervalEnd ? undefined : below;
  };
}
