import type { EndpointFilter } from "@fairlead/core";
import type { Claim } from "./claim.ts";
import { conflicts } from "./conflicts.ts";
import { type ResolvedCIDRs, resolve, type StaticCIDRs } from "./resolve.ts";
import type { NetworksDecision } from "./types.ts";

export interface ResultParts {
  readonly written: StaticCIDRs;
  /** Those that count. */
  readonly claims: readonly Claim[];
  /** What decides by these CIDRs now, with the addresses that are neutral to it. */
  readonly decider: (cidrs: ResolvedCIDRs) => {
    readonly filter: EndpointFilter;
    readonly neutralAddresses: ReadonlySet<string>;
  };
}

/** What all that counts comes to, in steps. */
export function* resultOf({
  written,
  claims,
  decider,
}: ResultParts): Generator<void, Omit<NetworksDecision, "touched">> {
  const learnt = claims.filter(({ side }) => side === "own").map(({ cidr }) => cidr);
  const resolved = resolve(written, claims);
  yield;
  const decides = decider(resolved);
  yield;
  const clusterCIDRs = [...new Set([...written.own, ...learnt.sort()])];
  return { ...resolved, ...decides, clusterCIDRs, conflicts: conflicts(written, claims) };
}
