import type { Assumption, Outcome } from "@fairlead/trace";

/** Ways of a packet that end alike. */
export interface MergedWay {
  /** The likeliest of them, with the probability of all. */
  readonly outcome: Outcome;
  readonly ways: number;
}

/**
 * Random draws lead to one end by many ways (nftables mode draws again where a draw is void): each end once, in the
 * order in which it comes first.
 */
export function mergedWays(outcomes: readonly Outcome[]): readonly MergedWay[] {
  const ends = new Map<string, Outcome[]>();
  for (const outcome of outcomes) {
    const end = endOf(outcome);
    const alike = ends.get(end);
    if (alike === undefined) ends.set(end, [outcome]);
    else alike.push(outcome);
  }
  return [...ends.values()].flatMap((alike) => {
    const [likeliest] = alike.toSorted((one, other) => other.probability - one.probability);
    if (likeliest === undefined) return [];
    const probability = alike.reduce((sum, one) => sum + one.probability, 0);
    return [{ outcome: { ...likeliest, probability }, ways: alike.length }];
  });
}

/** All that is said of an end: where two differ in any of it, they are two. */
function endOf({ verdict, rejectWith, noRoute, routeUnknown, hook, table, path, assumed = [], ...rest }: Outcome) {
  const { destination, masqueraded, source, outInterface, virtualServer } = rest;
  const place = verdict === "accept" ? path : [hook, table];
  const open = assumed.map(({ table: of, chain, index, matched }: Assumption) => [of, chain, index, matched]);
  return JSON.stringify([
    [verdict, rejectWith, noRoute, routeUnknown, place, open],
    [destination, masqueraded, masqueraded ? source.address : "", outInterface, virtualServer],
  ]);
}
