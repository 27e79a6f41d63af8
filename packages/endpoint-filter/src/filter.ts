import {
  createIntern,
  type EndpointFilter,
  type FilterEndpoint,
  type IPFamily,
  type OwnershipDecision,
  type Service,
} from "@fairlead/core";
import { CIDRSides } from "./cidr/sides.ts";
import { clientSides } from "./clients.ts";
import { masqueradesPods } from "./masquerade.ts";
import { isNeutral } from "./neutral.ts";
import { type FilterOptions, type OptionsBesideCIDRs, OWNERSHIP_ANNOTATION } from "./options.ts";
import { type Annotation, findOwner, type Owner, readAnnotation } from "./owner.ts";
import { API_SERVER, isAPIServer, isServedAnyway } from "./protected.ts";
import { survey } from "./survey.ts";

/**
 * Decides which services and endpoints are this proxy's, in a cluster with more than one pod network. Pure: what it
 * keeps between two decisions is the text of reasons, since thousands of services have the same one.
 *
 * @throws TypeError for a CIDR that `parseExcludeCIDRs` would refuse by itself
 */
export function createEndpointFilter(options: FilterOptions): EndpointFilter {
  return filterBySides(CIDRSides.of(options.excludeCIDRs, options.ownCIDRs), options);
}

/** The same of CIDRs that are on their sides already: what it costs to make does not depend on how many they are. */
export function filterBySides(sides: CIDRSides, options: OptionsBesideCIDRs): EndpointFilter {
  const { neutralAddresses: neutral } = options;
  const shared = createIntern(MOST_REASONS);
  const isExcluded = (endpoint: FilterEndpoint) =>
    !isNeutral(neutral, endpoint) && sides.excluding(endpoint.address) !== undefined;
  const masquerades = masqueradesPods(options, isExcluded);
  let clients: CIDRSides | undefined;
  return {
    isForeign: (address) => neutral?.has(address) !== true && sides.excluding(address) !== undefined,
    ...((options.excludedFrontends === "excluded-clients" || options.protection !== undefined) && {
      excludedClients: (family: IPFamily) => {
        clients ??= clientSides(sides, options);
        return clients.regions(family);
      },
    }),
    decide(service, _family, given, remembered) {
      const endpoints = Array.isArray(given) ? given : [...given];
      const annotation = annotationOf(options, service);
      const found = survey(sides, endpoints, neutral);
      const owner = isAPIServer(service)
        ? ownerOfAPIServer(annotation.ownership)
        : findOwner(options, annotation.ownership, options.rule?.(service), found, remembered);
      const { ownership, decided, decidedBy } = owner;
      const isProtected = isServedAnyway(options, service, owner, endpoints);
      const frontends = isProtected ? FRONTENDS["excluded-clients"] : frontendsOf(owner, options);
      const written = options.protection?.written ?? sides;
      const problem =
        annotation.problem ??
        unansweredDNS(service, frontends) ??
        listedAPIServer(service, ownership, written, endpoints);
      const why = isProtected ? `${owner.why}; protected, so it is answered here` : owner.why;
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
        ...(isProtected && { protected: true as const }),
        ...(masquerades({ ownership, frontends }, endpoints) && { masqueradesPods: true as const }),
        ...(problem === undefined ? {} : { problem }),
      };
    },
  };
}

/** That of the API server's own Service counts only where the operator leaves it unprotected. */
function annotationOf({ ownershipAnnotation, protection }: OptionsBesideCIDRs, service: Service): Annotation {
  const annotation = ownershipAnnotation ? readAnnotation(service) : {};
  if (annotation.ownership !== "foreign" || !isAPIServer(service)) return annotation;
  if (protection?.unprotected.has(API_SERVER) === true) return annotation;
  return { problem: `annotation ${OWNERSHIP_ANNOTATION} is ignored: ${API_SERVER} is protected` };
}

/** The operator's own list, or the annotation, leaves it to the other network. */
function unansweredDNS({ clusterDNS }: Service, frontends: OwnershipDecision["frontends"]): string | undefined {
  if (clusterDNS !== true || (frontends !== "none" && frontends !== "all-but-cluster-ip")) return undefined;
  return "the cluster's DNS is left to another network: nodes, our pods and others are not answered here; excludedFrontends: excluded-clients answers them";
}

/** The operator's own list has the API server in it, which is most likely a mistake. */
function listedAPIServer(
  service: Service,
  ownership: OwnershipDecision["ownership"],
  written: CIDRSides,
  endpoints: readonly FilterEndpoint[],
): string | undefined {
  if (!isAPIServer(service) || ownership !== "ours") return undefined;
  const { cidrs } = survey(written, endpoints);
  if (cidrs.length === 0) return undefined;
  return `the API server is in ${cidrs.join(", ")}, which is excluded; its Service is answered here all the same`;
}

/** Neither a list nor a rule nor anything learned gives it away. */
function ownerOfAPIServer(annotation: Annotation["ownership"]): Owner {
  if (annotation !== undefined) {
    const why = `annotation ${OWNERSHIP_ANNOTATION}: ${annotation}`;
    return { ownership: annotation, decided: true, decidedBy: "annotation", why };
  }
  return { ownership: "ours", decided: true, decidedBy: "protected", why: "it is the API server's own Service" };
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
  { ownership, excludedFrontends }: Owner,
  options: Pick<FilterOptions, "excludedFrontends">,
): OwnershipDecision["frontends"] {
  return ownership === "foreign" ? FRONTENDS[excludedFrontends ?? options.excludedFrontends] : "all";
}

const FRONTENDS = {
  all: "none",
  "cluster-ip": "all-but-cluster-ip",
  "excluded-clients": "all-but-excluded-clients",
} as const satisfies Record<FilterOptions["excludedFrontends"], OwnershipDecision["frontends"]>;
