import type { EndpointFilter } from "@fairlead/core";
import { type CIDRSides, filterBySides, type OptionsBesideCIDRs } from "@fairlead/endpoint-filter";

/** Makes endpoint filters; the same CIDRs and options as the last time give the same one. */
export class Filters {
  #last:
    | { readonly sides: CIDRSides; readonly besides: OptionsBesideCIDRs; readonly filter: EndpointFilter }
    | undefined;

  /** @param besides is compared by what is in it, one level deep */
  get(sides: CIDRSides, besides: OptionsBesideCIDRs): EndpointFilter {
    const last = this.#last;
    if (last?.sides === sides && sameFields(last.besides, besides)) return last.filter;
    const filter = filterBySides(sides, besides);
    this.#last = { sides, besides, filter };
    return filter;
  }
}

function sameFields(a: object, b: object): boolean {
  const before = new Map(Object.entries(a));
  const after = Object.entries(b);
  return before.size === after.length && after.every(([name, value]) => before.get(name) === value);
}
