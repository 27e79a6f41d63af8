import type { Outcome } from "../conformance/expected.ts";

/** Where packets ended and with what probability: `10.144.1.5:8080 as the node`, `leave`, `reject`, `drop`. */
export type OutcomeShares = ReadonlyMap<string, number>;

/** Collects ways; equal ones add up. */
export function waysOf(ends: Iterable<{ readonly way: string; readonly probability: number }>): OutcomeShares {
  const ways = new Map<string, number>();
  for (const { way, probability } of ends) ways.set(way, (ways.get(way) ?? 0) + probability);
  return ways;
}

/** @param end `address:port`, or a verdict */
export function wayTo(end: string, masqueraded: boolean): string {
  return masqueraded ? `${end} as the node` : end;
}

export function expectedWays(outcome: Outcome): OutcomeShares {
  if (outcome.verdict !== "endpoints") return new Map([[outcome.verdict, 1]]);
  return waysOf(
    outcome.landings.map(({ endpoint, masqueraded, probability }) => ({
      way: wayTo(endpoint, masqueraded),
      probability,
    })),
  );
}

/** iptables writes probabilities with eleven digits. */
const TOLERANCE = 1e-6;

export interface WaysComparison {
  readonly probabilities: boolean;
  /** By which part of it a probability may be off: nftables mode draws evenly but for half a percent. */
  readonly uneven?: number;
}

/** What differs, in words; empty where nothing does. */
export function differences(expected: OutcomeShares, observed: OutcomeShares, compare: WaysComparison): string[] {
  const { probabilities, uneven = 0 } = compare;
  const ways = [...new Set([...expected.keys(), ...observed.keys()])];
  return ways.flatMap((way) => {
    const [wanted, seen] = [expected.get(way), observed.get(way)];
    if (wanted === undefined) return [`went to ${way}`];
    if (seen === undefined) return [`never went to ${way}`];
    const off = probabilities && Math.abs(wanted - seen) > TOLERANCE + uneven * wanted;
    return off ? [`went to ${way} with probability ${seen} instead of ${wanted}`] : [];
  });
}
