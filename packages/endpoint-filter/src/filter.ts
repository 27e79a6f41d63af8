import type { EndpointFilter, OwnershipDecision } from "@fairlead/core";
import { type CIDR, parseCIDR } from "./cidr/cidr.ts";
import { createTable } from "./cidr/table.ts";
import type { FilterOptions } from "./options.ts";
import { findOwner, readAnnotation } from "./owner.ts";
import { survey } from "./survey.ts";

/**
 * Decides which services and endpoints are this proxy's, in a cluster with more than one pod network. Pure: it keeps
 * nothing between two decisions.
 *
 * @throws TypeError for an excluded CIDR that `parseExcludeCIDRs` would refuse by itself
 */
export function createEndpointFilter(options: FilterOptions): EndpointFilter {
  const table = createTable(options.excludeCIDRs.map(asCIDR));
  const isExcluded = (address: string) => table.find(address) !== undefined;
  return {
    isForeign: isExcluded,
    decide(service, _family, addresses, remembered) {
      const annotation = options.ownershipAnnotation ? readAnnotation(service) : {};
      const found = survey(table, addresses);
      const owner = findOwner(options, annotation.ownership, found, remembered);
      const { ownership, decided, why } = owner;
      const frontends = frontendsOf(ownership, options.excludedFrontends);
      return {
        ownership,
        decided,
        why: frontends === "all-but-cluster-ip" ? `${why}; only its ClusterIP is left to the other network` : why,
        frontends,
        ...(ownership === "mixed" ? { excludes: isExcluded } : {}),
        decidingCIDRs: found.cidrs,
        ownEndpoints: found.own,
        excludedEndpoints: found.excluded,
        ...(annotation.problem === undefined ? {} : { problem: annotation.problem }),
      };
    },
  };
}

/** What is foreign keeps all its endpoints: under `cluster-ip` the other frontends are proxied to every one of them. */
function frontendsOf(
  ownership: OwnershipDecision["ownership"],
  left: FilterOptions["excludedFrontends"],
): OwnershipDecision["frontends"] {
  if (ownership !== "foreign") return "all";
  return left === "cluster-ip" ? "all-but-cluster-ip" : "none";
}

function asCIDR(text: string): CIDR {
  const written = parseCIDR(text);
  if (written === undefined || written.hostBits || written.mapped) {
    throw new TypeError(
      `${JSON.stringify(text)} is no CIDR that can be excluded; parseExcludeCIDRs says what is wrong`,
    );
  }
  return written.network;
}
