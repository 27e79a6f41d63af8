import { socketText } from "@fairlead/base";
import type { ServicePortGroup, Treatment } from "@fairlead/core";
import { landings, type Outcome } from "@fairlead/trace";

/**
 * Where the packets of one source to one destination end, with the share of each end: `10.144.1.5:8080`,
 * `10.144.1.5:8080 masqueraded`, `reject`, `drop`, or `untouched`.
 */
export type OutcomeShares = ReadonlyMap<string, number>;

/** What becomes of packets that nothing takes. */
export const UNTOUCHED = "untouched";

/** What the plan wants for packets from an address. */
export function wantedWays(treatment: Treatment, group: ServicePortGroup, source: string): OutcomeShares {
  if (treatment.verdict === "leave") return new Map([[UNTOUCHED, 1]]);
  if (treatment.verdict !== "proxy") return new Map([[treatment.verdict, 1]]);
  const endpoints = group[treatment.set];
  // A virtual server without destinations refuses.
  if (endpoints.length === 0) return new Map([["reject", 1]]);
  return sum(
    endpoints.map(({ address, port }) => [
      // A pod that reaches itself has to answer the node, or it would answer itself past the translation.
      wayTo(socketText(address, port), treatment.masquerade || address === source),
      1 / endpoints.length,
    ]),
  );
}

/** What rules do, as the tracer found out; of an exploration the shares among all of its outcomes. */
export function tracedWays(outcomes: readonly Outcome[]): OutcomeShares {
  const total = outcomes.reduce((all, { probability }) => all + probability, 0);
  const found = landings(outcomes).map((one) => ({ ...one, probability: one.probability / total }));
  return sum(
    found.map(({ verdict, destination, translated, masqueraded, probability }) => {
      if (verdict !== "accept") return [verdict, probability];
      return [translated ? wayTo(destination, masqueraded) : UNTOUCHED, probability];
    }),
  );
}

/** iptables writes probabilities with eleven digits. */
const TOLERANCE = 1e-6;
/** By which part of it a share may be off: nftables mode draws evenly but for half a percent. */
const UNEVEN = 0.005;

export function sameWays(a: OutcomeShares, b: OutcomeShares): boolean {
  if (a.size !== b.size) return false;
  return [...a].every(([way, share]) => Math.abs((b.get(way) ?? -1) - share) < TOLERANCE + UNEVEN * share);
}

/** `10.144.1.5:8080 50 %, 10.144.2.6:8080 50 %` */
export function waysText(ways: OutcomeShares): string {
  if (ways.size === 1) return [...ways.keys()].join("");
  const shares = [...ways].sort(([a], [b]) => (a < b ? -1 : 1));
  return shares.map(([way, share]) => `${way} ${percent(share)}`).join(", ");
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share * 100 < 10 ? 1 : 0).replace(/\.0$/, "")} %`;
}

function wayTo(endpoint: string, masqueraded: boolean): string {
  return masqueraded ? `${endpoint} masqueraded` : endpoint;
}

function sum(shares: readonly (readonly [way: string, share: number])[]): OutcomeShares {
  const ways = new Map<string, number>();
  for (const [way, share] of shares) ways.set(way, (ways.get(way) ?? 0) + share);
  return ways;
}
