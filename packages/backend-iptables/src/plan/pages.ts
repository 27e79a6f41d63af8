import type { EndpointSetName, PlanEndpoint } from "@fairlead/core";
import type { ChainNames } from "./group-names.ts";

/** Some of a large set's endpoints, which have chains of their own to be chosen from. */
export interface Page {
  readonly endpoints: readonly PlanEndpoint[];
  /** Chooses one of them. */
  readonly chain: string;
  /** Under affinity: has those go on who have been at one of them lately, and no others. */
  readonly knownChain: string;
}

/**
 * Endpoints of a set up to which its chain has a rule for each of them, as kube-proxy's. Such a chain is written as a
 * whole whenever one of them comes or goes, and iptables-restore on the nft variant is quadratic in the jumps of one
 * transaction: 5,000 take a second, 100,000 minutes.
 */
const FLAT = 5_000;

/** Beyond it there are 1,024 pages, else 32, so that a page and the chain before it have about as many rules. */
const FEW_PAGES = 32_768;

/**
 * Cuts a large set into pages. An endpoint's page follows from the hash in its own chain's name, so that whoever comes
 * or goes changes no page but one.
 *
 * @returns none for a set that fits into one chain
 */
export function pagesOf(endpoints: readonly PlanEndpoint[], set: EndpointSetName, names: ChainNames): readonly Page[] {
  if (endpoints.length <= FLAT) return [];
  const digits = endpoints.length > FEW_PAGES ? 2 : 1;
  const pages = Map.groupBy(endpoints, (endpoint) => names.endpoint(endpoint).slice(HASH_AT, HASH_AT + digits));
  return [...pages]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([page, some]) => ({
      endpoints: some,
      chain: `${names.set[set]}-${page}`,
      knownChain: `${names.set[set]}.${page}`,
    }));
}

const HASH_AT = "KUBE-SEP-".length;
