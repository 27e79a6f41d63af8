import type { PlanEndpoint } from "@fairlead/core";

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
 * Sorts a large set's endpoints into pages, one at a time, as there may be a hundred thousand. An endpoint's page
 * follows from the hash in its own chain's name, so that an endpoint that comes or goes changes one page only.
 */
export class Pager {
  readonly #endpoints: readonly PlanEndpoint[];
  readonly #chainOf: (endpoint: PlanEndpoint) => string;
  readonly #pages = new Map<string, PlanEndpoint[]>();
  readonly #digits: number;
  #sorted = 0;

  /** @param chainOf the name of an endpoint's chain */
  constructor(endpoints: readonly PlanEndpoint[], chainOf: (endpoint: PlanEndpoint) => string) {
    this.#endpoints = endpoints;
    this.#chainOf = chainOf;
    this.#digits = endpoints.length > FEW_PAGES ? 2 : 1;
  }

  /** Sorts one more endpoint in. */
  step(): void {
    const endpoint = this.#endpoints[this.#sorted];
    if (endpoint === undefined || this.#endpoints.length <= FLAT) return;
    this.#sorted++;
    const page = this.#chainOf(endpoint).slice(HASH_AT, HASH_AT + this.#digits);
    const known = this.#pages.get(page);
    if (known === undefined) this.#pages.set(page, [endpoint]);
    else known.push(endpoint);
  }

  /**
   * The pages, with what was not sorted in yet.
   *
   * @param chain the set's
   * @returns none for a set that fits into one chain
   */
  pages(chain: string): readonly Page[] {
    if (this.#endpoints.length <= FLAT) return [];
    while (this.#sorted < this.#endpoints.length) this.step();
    const pages = [...this.#pages].sort(([a], [b]) => (a < b ? -1 : 1));
    return pages.map(([page, endpoints]) => ({ endpoints, chain: `${chain}-${page}`, knownChain: `${chain}.${page}` }));
  }
}

const HASH_AT = "KUBE-SEP-".length;
