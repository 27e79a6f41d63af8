import type { EndpointFilter } from "@fairlead/core";
import { createEndpointFilter, type FilterOptions } from "@fairlead/endpoint-filter";
import type { ResolvedCIDRs } from "./resolve.ts";

/** What decides beside the CIDRs. */
export type Besides = Omit<FilterOptions, keyof ResolvedCIDRs>;

/** A filter is asked for before, while and after a CIDR is let in. */
const KEPT = 3;

/** Makes endpoint filters; equal CIDRs give the same one while nothing else changed: a table of thousands costs. */
export class Filters {
  #besides: Besides | undefined;
  #made = new Map<string, EndpointFilter>();

  /** @param besides is compared by what is in it, one level deep */
  get(cidrs: ResolvedCIDRs, besides: Besides): EndpointFilter {
    if (this.#besides === undefined || !sameFields(this.#besides, besides)) this.#made.clear();
    this.#besides = besides;
    const key = `${cidrs.excludeCIDRs.join()} ${cidrs.ownCIDRs.join()}`;
    const filter = this.#made.get(key) ?? createEndpointFilter({ ...besides, ...cidrs });
    // The one used last stands last.
    this.#made.delete(key);
    this.#made.set(key, filter);
    const [oldest] = this.#made.keys();
    if (this.#made.size > KEPT && oldest !== undefined) this.#made.delete(oldest);
    return filter;
  }
}

function sameFields(a: object, b: object): boolean {
  const before = new Map(Object.entries(a));
  const after = Object.entries(b);
  return before.size === after.length && after.every(([name, value]) => before.get(name) === value);
}
