import { familyOf } from "@fairlead/base";
import type { FilterEndpoint, Ownership, OwnershipDecision } from "../filter.ts";
import type { EndpointSlice, IPFamily, Service, SliceEndpoint } from "../objects.ts";
import type { PlannerOptions } from "./options.ts";

/** Decides whose a service is in a family; without a filter it is ours. */
export function decideOwnership(
  { filter, semantics }: Pick<PlannerOptions, "filter" | "semantics">,
  service: Service,
  family: IPFamily,
  slices: readonly EndpointSlice[],
  remembered: Ownership | undefined,
): OwnershipDecision {
  const endpoints = endpointsOf(slices, family);
  const decision = filter?.decide(service, family, endpoints, remembered) ?? withoutFilter(endpoints, remembered);
  if (decision.frontends !== "all-but-excluded-clients" || semantics.excludesClients) return decision;
  if (decision.protected === true) {
    const why = `${decision.why}; in this mode for all clients, so it is served here`;
    return { ...decision, ownership: "ours", frontends: "all", why };
  }
  // To take all of an address would be to take the other network's own clients as well.
  return { ...decision, frontends: "all-but-cluster-ip", why: `${decision.why}; in this mode for all clients` };
}

/** What holds where nothing is excluded. It needs no memory, and only corrects one that says otherwise. */
export function withoutFilter(endpoints: readonly FilterEndpoint[], remembered?: Ownership): OwnershipDecision {
  return {
    ownership: "ours",
    decided: remembered !== undefined && remembered !== "ours",
    why: "no cluster CIDR is excluded",
    frontends: "all",
    decidingCIDRs: NONE,
    ownEndpoints: new Set(endpoints.map(({ address }) => address)).size,
    excludedEndpoints: 0,
  };
}

const NONE: readonly string[] = [];

/** All of them, of all ports. */
export function endpointsOf(slices: readonly EndpointSlice[], family: IPFamily): readonly SliceEndpoint[] {
  return slices.flatMap((slice) => (slice.family === family ? slice.endpoints : []));
}

/** The ClusterIP of a service in a family. */
export function clusterIPOf(service: Service, family: IPFamily): string | undefined {
  return service.clusterIPs.find((ip) => familyOf(ip) === family);
}
