import type { EndpointFilter, OwnershipDecision } from "@fairlead/core";
import { type CIDR, parseCIDR } from "./cidr/cidr.ts";
import { type CIDRTable, createTable } from "./cidr/table.ts";
import type { FilterOptions } from "./options.ts";
import { findOwner, readAnnotation } from "./owner.ts";
import { survey } from "./survey.ts";

/**
 * Decides which services and endpoints are this proxy's, in a cluster with more than one pod network. Pure: it keeps
 * nothing between two decisions.
 *
 * @throws TypeError for a CIDR that `parseExcludeCIDRs` would refuse by itself
 */
export function createEndpointFilter(options: FilterOptions): EndpointFilter {
  const { neutralAddresses: neutral } = options;
  const table = excludedTable(options.excludeCIDRs, options.ownCIDRs ?? []);
  const isExcluded = (address: string) => neutral?.has(address) !== true && table.find(address) !== undefined;
  return {
    isForeign: isExcluded,
    decide(service, _family, addresses, remembered) {
      const annotation = options.ownershipAnnotation ? readAnnotation(service) : {};
      const found = survey(table, addresses, neutral);
      const owner = findOwner(options, annotation.ownership, options.rule?.(service), found, remembered);
      const { ownership, decided, decidedBy, why } = owner;
      const frontends = frontendsOf(ownership, options.excludedFrontends);
      return {
        ownership,
        decided,
        decidedBy,
        why: frontends === "all-but-cluster-ip" ? `${why}; only its ClusterIP is left to the other network` : why,
        frontends,
        ...(ownership === "mixed" ? { excludes: isExcluded } : {}),
        decidingCIDRs: found.cidrs,
        ownEndpoints: found.own + found.neutral,
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

/** Finds excluded CIDRs only: an own one that is more specific hides the wider excluded one around it. */
function excludedTable(excludeCIDRs: readonly string[], ownCIDRs: readonly string[]): CIDRTable {
  const excluded = excludeCIDRs.map(asCIDR);
  if (ownCIDRs.length === 0 || excluded.length === 0) return createTable(excluded);
  const texts = new Set(excluded.map(({ text }) => text));
  const table = createTable([...excluded, ...ownCIDRs.map(asCIDR)]);
  return {
    find(address) {
      const cidr = table.find(address);
      return cidr !== undefined && texts.has(cidr.text) ? cidr : undefined;
    },
  };
}

function asCIDR(text: string): CIDR {
  const written = parseCIDR(text);
  if (written === undefined || written.hostBits || written.mapped) {
    throw new TypeError(
      `${JSON.stringify(text)} is no CIDR that can be a network's; parseExcludeCIDRs says what is wrong`,
    );
  }
  return written.network;
}
