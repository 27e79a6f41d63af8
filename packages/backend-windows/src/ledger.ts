/** What the plan needs of HCN, by what only one object can have: load balancers by frontend, endpoints by address. */

import type { PlanContext } from "./plan/context.ts";
import { type GroupObjects, remoteEndpoint, type WantedBalancer, type WantedEndpoint } from "./plan/objects.ts";

const NOTHING: GroupObjects = { balancers: [] };

/** What all groups need. Probes of an address with several ports are one load balancer, and groups share endpoints. */
export class Ledger {
  readonly #groups = new Map<string, GroupObjects>();
  readonly #balancers = new Map<string, Map<string, WantedBalancer>>();
  readonly #endpoints = new Map<string, Map<string, WantedEndpoint>>();

  /** Keys of the load balancers that the plan needs. */
  get keys(): Iterable<string> {
    return this.#balancers.keys();
  }

  /** Addresses of the endpoints that HCN does not have by itself. */
  get addresses(): Iterable<string> {
    return this.#endpoints.keys();
  }

  balancer(key: string): WantedBalancer | undefined {
    return firstOf(this.#balancers.get(key));
  }

  /** The endpoint that an address needs; undefined: no load balancer leads there. */
  endpoint(address: string): WantedEndpoint | undefined {
    return firstOf(this.#endpoints.get(address));
  }

  /**
   * Replaces what a group needs.
   *
   * @returns what may have changed by it: keys of load balancers, addresses of endpoints
   */
  replace(group: string, after: GroupObjects = NOTHING, context: PlanContext): Touched {
    const before = this.#groups.get(group) ?? NOTHING;
    const [old, now] = [endpointsOf(before, context), endpointsOf(after, context)];
    for (const { key } of before.balancers) remove(this.#balancers, key, group);
    for (const balancer of after.balancers) add(this.#balancers, balancer.key, group, balancer);
    for (const { address } of old) remove(this.#endpoints, address, group);
    for (const endpoint of now) add(this.#endpoints, endpoint.address, group, endpoint);
    if (after === NOTHING) this.#groups.delete(group);
    else this.#groups.set(group, after);
    return {
      keys: [...before.balancers, ...after.balancers].map(({ key }) => key),
      addresses: [...old, ...now].map(({ address }) => address),
    };
  }
}

export interface Touched {
  readonly keys: readonly string[];
  readonly addresses: readonly string[];
}

function endpointsOf({ balancers, virtual }: GroupObjects, context: PlanContext): readonly WantedEndpoint[] {
  const elsewhere = balancers.flatMap(({ endpoints }) => endpoints.filter(({ local }) => !local));
  const addresses = new Set(elsewhere.map(({ address }) => address));
  return [...Array.from(addresses, (address) => remoteEndpoint(address, context)), ...(virtual ? [virtual] : [])];
}

function add<T>(map: Map<string, Map<string, T>>, key: string, group: string, value: T): void {
  const known = map.get(key);
  if (known === undefined) map.set(key, new Map([[group, value]]));
  else known.set(group, value);
}

function remove<T>(map: Map<string, Map<string, T>>, key: string, group: string): void {
  const known = map.get(key);
  known?.delete(group);
  if (known?.size === 0) map.delete(key);
}

function firstOf<T>(claims: ReadonlyMap<string, T> | undefined): T | undefined {
  return claims?.values().next().value;
}
