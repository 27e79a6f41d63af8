import type { Hex, NftSet, SetElement } from "@fairlead/netfilter/nft";

/**
 * Looks keys up in a set of intervals: one begins with an element and goes to before the next that is an end, or to the
 * last key of all.
 */
export function intervalsOf(set: NftSet): (key: Hex) => SetElement | undefined {
  const bounds = [...set.elements.values()].sort(inOrder);
  return (key) => {
    const below = bounds.findLast((bound) => bound.key <= key);
    return below === undefined || below.intervalEnd ? undefined : below;
  };
}

/** Where one interval ends and another begins, the end comes first. */
function inOrder(a: SetElement, b: SetElement): number {
  if (a.key !== b.key) return a.key < b.key ? -1 : 1;
  return Number(b.intervalEnd === true) - Number(a.intervalEnd === true);
}
