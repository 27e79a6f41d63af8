import type { IPFamily, Ownership, ServiceKey } from "@fairlead/core";
import type { ServiceExplanation } from "@fairlead/inspect";
import type { LearnedCIDR } from "@fairlead/intake";

/** `GET api/service`: as `fairlead explain -o json` has it. */
export interface ServiceAnswer {
  readonly planAt: number;
  readonly explanation: ServiceExplanation;
  /** Of the CIDRs that decide whose it is those that were learned, with their objects and since when. */
  readonly learnedFrom: readonly LearnedCIDR[];
  /** As `fairlead ownership --watch` would have told them, the oldest first. */
  readonly owners: { readonly since: number; readonly changes: readonly OwnerChange[] };
}

/** Another owner of a service in a family; without `before` it was not there, without `after` it is gone. */
export interface OwnerChange {
  readonly at: number;
  readonly family: IPFamily;
  readonly before?: Ownership;
  readonly after?: Ownership;
  readonly why?: string;
}

/** `GET api/search`: the services that match, in the order of their names. */
export interface SearchAnswer {
  readonly services: readonly ServiceKey[];
}
