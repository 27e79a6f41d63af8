import type { FilterEndpoint, OwnershipDecision } from "@fairlead/core";
import { CIDRSides } from "./cidr/sides.ts";
import { isNeutral } from "./neutral.ts";
import type { OptionsBesideCIDRs } from "./options.ts";

/** Whether our own pods are masqueraded on the way to what is served of a service here. */
export type MasqueradesPods = (
  decision: Pick<OwnershipDecision, "ownership" | "frontends">,
  endpoints: readonly FilterEndpoint[],
) => boolean;

/**
 * Another network answers our pods by its own way, past the node that translated the request, unless the request came
 * from that node. What lies in `clusterCIDRs` routes to our pods.
 *
 * @param isExcluded whether an endpoint lies in another network
 */
export function masqueradesPods(
  { masqueradeToExcluded, clusterCIDRs = [], neutralAddresses }: OptionsBesideCIDRs,
  isExcluded: (endpoint: FilterEndpoint) => boolean,
): MasqueradesPods {
  if (masqueradeToExcluded === false) return () => false;
  const own = CIDRSides.of([], clusterCIDRs);
  return ({ ownership, frontends }, endpoints) => {
    if (frontends === "none" || ownership === "mixed") return false;
    if (masqueradeToExcluded === undefined && frontends !== "all-but-excluded-clients") return false;
    const isTheirs = ownership === "foreign" ? () => true : isExcluded;
    return endpoints.some(
      (one) => isTheirs(one) && !isNeutral(neutralAddresses, one) && own.containing(one.address) === undefined,
    );
  };
}
