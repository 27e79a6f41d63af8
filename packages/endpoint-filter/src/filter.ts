import { createIntern, type EndpointFilter, type IPFamily, type OwnershipDecision } from "@fairlead/core";
import { type CIDR, parseCIDR } from "./cidr/cidr.ts";
import { regionsOf } from "./cidr/regions.ts";
import { type CIDRTable, createTable } from "./cidr/table.ts";
import type { FilterOptions } from "./options.ts";
import { findOwner, readAnnotation } from "./owner.ts";
import { survey } from "./survey.ts";

/**
 * Decides which services and endpoints are this proxy's, in a cluster with more than one pod network. Pure: what it
 * keeps between two decisions is the text of reasons, since thousands of services have the same one.
 *
 * @throws TypeError for a CIDR that `parseExcludeCIDRs` would refuse by itself
 */
export function createEndpointFilter(options: FilterOptions): EndpointFilter {
  const { neutralAddresses: neutral } = options;
  const table = excludedTable(options.excludeCIDRs, options.ownCIDRs ?? []);
  const clients = options.excludedFrontends === "excluded-clients" ? excludedClients(options) : undefined;
  const shared = createIntern(MOST_REASONS);
  const isExcluded = (address: string) => neutral?.has(address) !== true && table.find(address) !== undefined;
  return {
    isForeign: isExcluded,
    ...(clients === undefined ? undefined : { excludedClients: (family: IPFamily) => clients[family] }),
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
        why: shared(`${why}${LEFT[frontends]}`),
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

/** Reasons that are kept for the next service. */
const MOST_REASONS = 1_000;

const LEFT: Readonly<Record<OwnershipDecision["frontends"], string>> = {
  all: "",
  none: "",
  "all-but-cluster-ip": "; only its ClusterIP is left to the other network",
  "all-but-excluded-clients": "; only its ClusterIP is left to the other network, for clients in excluded CIDRs",
};

/** What is foreign keeps all its endpoints: what is proxied here of it is proxied to every one of them. */
function frontendsOf(
  ownership: OwnershipDecision["ownership"],
  left: FilterOptions["excludedFrontends"],
): OwnershipDecision["frontends"] {
  if (ownership !== "foreign") return "all";
  return FRONTENDS[left];
}

const FRONTENDS = {
  all: "none",
  "cluster-ip": "all-but-cluster-ip",
  "excluded-clients": "all-but-excluded-clients",
} as const satisfies Record<FilterOptions["excludedFrontends"], OwnershipDecision["frontends"]>;

/** An own CIDR that is more specific takes its part out of the wider excluded one around it. */
function excludedClients({
  excludeCIDRs,
  ownCIDRs = [],
}: FilterOptions): Readonly<Record<IPFamily, readonly string[]>> {
  const excluded = new Set(excludeCIDRs.map((text) => asCIDR(text).text));
  const all = [...excludeCIDRs, ...ownCIDRs].map(asCIDR);
  const ofFamily = (family: IPFamily) => all.filter((cidr) => cidr.family === family);
  const inFamily = (family: IPFamily) => regionsOf(ofFamily(family), ({ text }) => excluded.has(text));
  return { IPv4: inFamily("IPv4"), IPv6: inFamily("IPv6") };
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
