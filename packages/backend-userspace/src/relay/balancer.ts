import { socketText } from "@fairlead/base";
import type { EndpointSetName, PlanEndpoint, ServicePortGroup } from "@fairlead/core";

/** Clients that a service port remembers; the one that was away longest is forgotten first. */
const MAX_CLIENTS = 65_536;

type Sets = Pick<ServicePortGroup, EndpointSetName | "affinitySeconds">;

interface Remembered {
  readonly endpoint: string;
  readonly at: number;
}

/**
 * Which endpoint of a service port is whose: one after the other, and with ClientIP affinity always the same for a
 * client until it has stayed away for that time. Both sets share what is remembered.
 */
export class Balancer {
  readonly #now: () => number;
  #sets: Sets = { cluster: [], local: [] };
  readonly #turn = { cluster: 0, local: 0 };
  /** In the order of last use. */
  readonly #clients = new Map<string, Remembered>();

  /** @param now milliseconds that never go back */
  constructor(now: () => number) {
    this.#now = now;
  }

  get clients(): number {
    return this.#clients.size;
  }

  /** Who was with an endpoint that is there no more chooses anew. */
  update(sets: Sets): void {
    this.#sets = sets;
    if (sets.affinitySeconds === undefined) this.#clients.clear();
    const there = new Set([...sets.cluster, ...sets.local].map(keyOf));
    for (const [client, { endpoint }] of this.#clients) if (!there.has(endpoint)) this.#clients.delete(client);
  }

  has(set: EndpointSetName, endpoint: PlanEndpoint): boolean {
    const key = keyOf(endpoint);
    return this.#sets[set].some((one) => keyOf(one) === key);
  }

  /**
   * @param client the address that packets come from
   * @param failed endpoints that this client could not be connected to just now, by `keyOf`; taken again when all
   * failed
   */
  choose(set: EndpointSetName, client: string, failed: ReadonlySet<string>): PlanEndpoint | undefined {
    const chosen = this.#remembered(set, client, failed) ?? this.#next(set, failed);
    if (chosen !== undefined && this.#sets.affinitySeconds !== undefined) this.#remember(client, chosen);
    return chosen;
  }

  #next(set: EndpointSetName, failed: ReadonlySet<string>): PlanEndpoint | undefined {
    const endpoints = this.#sets[set];
    const start = this.#turn[set];
    const order = endpoints.map((_, index) => (start + index) % endpoints.length);
    const index = order.find((at) => !failed.has(keyOf(endpoints[at]))) ?? order[0];
    if (index === undefined) return undefined;
    this.#turn[set] = index + 1;
    return endpoints[index];
  }

  #remembered(set: EndpointSetName, client: string, failed: ReadonlySet<string>): PlanEndpoint | undefined {
    this.#forget();
    const known = this.#clients.get(client);
    if (known === undefined || failed.has(known.endpoint)) return undefined;
    return this.#sets[set].find((endpoint) => keyOf(endpoint) === known.endpoint);
  }

  #remember(client: string, endpoint: PlanEndpoint): void {
    this.#clients.delete(client);
    this.#clients.set(client, { endpoint: keyOf(endpoint), at: this.#now() });
    const [oldest] = this.#clients.keys();
    if (this.#clients.size > MAX_CLIENTS && oldest !== undefined) this.#clients.delete(oldest);
  }

  #forget(): void {
    const since = this.#now() - (this.#sets.affinitySeconds ?? 0) * 1000;
    for (const [client, { at }] of this.#clients) {
      if (at > since) return;
      this.#clients.delete(client);
    }
  }
}

export function keyOf(endpoint: PlanEndpoint | undefined): string {
  return endpoint === undefined ? "" : socketText(endpoint.address, endpoint.port);
}
