/** Who serves a service, and to which endpoints: the decisions of the filter. */

import { hostCIDR } from "@fairlead/base";
import {
  createIntern,
  type DecidedBy,
  type EndpointFilter,
  type FilterEndpoint,
  type IPFamily,
  type Ownership,
  type OwnershipDecision,
  quoted,
  type Service,
  type ServiceKey,
  serviceKey,
} from "@fairlead/core";
import {
  type FilterOptions,
  isNeutral,
  type NeutralAddresses,
  type OtherOptions,
  OWNERSHIP_ANNOTATION,
  type RuledOwner,
} from "./options.ts";
import { CIDRSides } from "./sides.ts";

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
export function filterBySides(sides: CIDRSides, options: OtherOptions): EndpointFilter {
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

/** The Service of the API server: without it no node learns of any change. */
export const API_SERVER: ServiceKey = "default/kubernetes";

interface Annotation {
  readonly ownership?: "ours" | "foreign";
  readonly problem?: string;
}

/** That of the API server's own Service counts only where the operator leaves it unprotected. */
function annotationOf({ ownershipAnnotation, protection }: OtherOptions, service: Service): Annotation {
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

/** Whose a service is, before it is asked what that means for its frontends and endpoints. */
interface Owner {
  readonly ownership: Ownership;
  readonly decided: boolean;
  readonly decidedBy: DecidedBy;
  readonly why: string;
  /** What of it is left to its network, where it is foreign. Default: as the options have it. */
  readonly excludedFrontends?: FilterOptions["excludedFrontends"];
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

/** On which side of the excluded CIDRs the endpoints of a service lie. */
interface Survey {
  /** Distinct addresses outside and inside. */
  readonly own: number;
  readonly excluded: number;
  /** Distinct addresses that decide nothing; in neither of the two. */
  readonly neutral: number;
  /** Excluded CIDRs with at least one of the addresses, sorted. */
  readonly cidrs: readonly string[];
}

/** The annotation decides before the rules, these before the CIDRs, and these before the memory. */
function findOwner(
  options: OtherOptions,
  annotation: Ownership | undefined,
  ruled: RuledOwner | undefined,
  found: Survey,
  remembered: Ownership | undefined,
): Owner {
  if (annotation !== undefined) {
    const why = `annotation ${OWNERSHIP_ANNOTATION}: ${annotation}`;
    return { ownership: annotation, decided: true, decidedBy: "annotation", why };
  }
  if (ruled !== undefined) {
    const { ownership, why, excludedFrontends = "all" } = ruled;
    return { ownership, decided: true, decidedBy: "rule", why, excludedFrontends };
  }
  const endpoints = { decided: true, decidedBy: "endpoints" } as const;
  if (found.own + found.excluded === 0) {
    if (found.neutral > 0) return { ownership: "ours", ...endpoints, why: fromNodes(found.neutral) };
    const ownership = underPolicy(remembered ?? "ours", options.mixedServices);
    return { ownership, decided: false, decidedBy: "memory", why: fromMemory(remembered, options.mixedServices) };
  }
  const ownership = underPolicy(bySides(found), options.mixedServices);
  return { ownership, ...endpoints, why: fromCIDRs(found, options.mixedServices) };
}

function bySides({ own, excluded }: Survey): Ownership {
  if (excluded === 0) return "ours";
  return own === 0 ? "foreign" : "mixed";
}

/** Under `skip` and `all` a mixed service is no third kind. */
function underPolicy(ownership: Ownership, policy: FilterOptions["mixedServices"]): Ownership {
  if (ownership !== "mixed" || policy === "own-endpoints") return ownership;
  return policy === "skip" ? "foreign" : "ours";
}

/** Reads `fairlead.dev/ownership`. Anybody may have written it: what is said of a bad value is quoted and cut. */
function readAnnotation({ annotations }: Service): Annotation {
  const value = annotations[OWNERSHIP_ANNOTATION];
  if (value === undefined) return {};
  if (value === "ours" || value === "foreign") return { ownership: value };
  const shown = quoted(value.length > 40 ? `${value.slice(0, 40)}…` : value);
  return { problem: `annotation ${OWNERSHIP_ANNOTATION} is ${shown}, ignored; it must be ours or foreign` };
}

function isAPIServer({ namespace, name }: Service): boolean {
  return namespace === "default" && name === "kubernetes";
}

/**
 * Whether a foreign service is served here to all clients that its network does not serve itself: the cluster's DNS and
 * those that the operator named, where something learned or a rule made them foreign. The operator's own list is
 * followed.
 */
function isServedAnyway(
  { protection, neutralAddresses }: OtherOptions,
  service: Service,
  { ownership, decidedBy }: Pick<Owner, "ownership" | "decidedBy">,
  endpoints: Iterable<FilterEndpoint>,
): boolean {
  if (protection === undefined || ownership !== "foreign" || decidedBy === "annotation") return false;
  if (service.clusterDNS !== true && !protection.services.has(serviceKey(service.namespace, service.name)))
    return false;
  const { own, excluded } = survey(protection.written, endpoints, neutralAddresses);
  return decidedBy === "rule" || own > 0 || excluded === 0;
}

function survey(sides: CIDRSides, endpoints: Iterable<FilterEndpoint>, neutral?: NeutralAddresses): Survey {
  const deciding = new Set<string>();
  const undecided = new Set<string>();
  for (const endpoint of endpoints) (isNeutral(neutral, endpoint) ? undecided : deciding).add(endpoint.address);
  // Slices may differ about where an address is; the order in which they come does not matter.
  for (const address of undecided) deciding.delete(address);
  const cidrs = new Set<string>();
  let excluded = 0;
  for (const address of deciding) {
    const cidr = sides.excluding(address);
    if (cidr === undefined) continue;
    excluded++;
    cidrs.add(cidr);
  }
  return {
    own: deciding.size - excluded,
    excluded,
    neutral: undecided.size,
    cidrs: cidrs.size === 0 ? NONE : [...cidrs].sort(),
  };
}

const NONE: readonly string[] = [];

/** Sentences for operators: log lines, `/ownership` and the command line show them as they are. */

function fromCIDRs({ own, excluded, cidrs }: Survey, policy: FilterOptions["mixedServices"]): string {
  const total = own + excluded;
  if (excluded === 0)
    return total === 1
      ? "its endpoint is in no excluded CIDR"
      : `none of its ${total} endpoints is in an excluded CIDR`;
  if (own === 0) return `${total === 1 ? "its endpoint is" : `all of its ${total} endpoints are`} in ${names(cidrs)}`;
  const are = excluded === 1 ? "is" : "are";
  return `${excluded} of its ${total} endpoints ${are} in ${names(cidrs)}; mixed services: ${POLICIES[policy]}`;
}

const POLICIES: Readonly<Record<FilterOptions["mixedServices"], string>> = {
  "own-endpoints": "own-endpoints, so only its other endpoints are used",
  skip: "skip, so it is not served",
  all: "all, so every endpoint is used",
};

function fromNodes(endpoints: number): string {
  return endpoints === 1
    ? "its endpoint is a node's address, which is in no pod network"
    : `all of its ${endpoints} endpoints are nodes' addresses, which are in no pod network`;
}

function fromMemory(remembered: Ownership | undefined, policy: FilterOptions["mixedServices"]): string {
  if (remembered === undefined) return "it has no endpoints, and its last owner is not known";
  const then = remembered === "mixed" ? `; mixed services: ${policy}` : "";
  return `it has no endpoints; when it last had endpoints, it was ${remembered}${then}`;
}

/** The first few: an operator may exclude a thousand. */
function names(cidrs: readonly string[]): string {
  const shown = cidrs.slice(0, 3).join(", ");
  return cidrs.length > 3 ? `${shown} and ${cidrs.length - 3} more` : shown;
}

/** Whether our own pods are masqueraded on the way to what is served of a service here. */
type MasqueradesPods = (
  decision: Pick<OwnershipDecision, "ownership" | "frontends">,
  endpoints: readonly FilterEndpoint[],
) => boolean;

/**
 * Another network answers our pods by its own way, past the node that translated the request, unless the request came
 * from that node. What lies in `clusterCIDRs` routes to our pods.
 *
 * @param isExcluded whether an endpoint lies in another network
 */
function masqueradesPods(
  { masqueradeToExcluded, clusterCIDRs = [], neutralAddresses }: OtherOptions,
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

/**
 * Where the clients are that another network serves itself: the excluded CIDRs without the addresses of nodes and of
 * the API server in what was learned. The operator's own list is followed.
 */
function clientSides(sides: CIDRSides, { neutralAddresses, protection }: OtherOptions): CIDRSides {
  let clients = sides;
  for (const address of neutralAddresses?.keys() ?? []) {
    const learned = sides.excluding(address) !== undefined && protection?.written.excluding(address) === undefined;
    if (learned) clients = clients.with(hostCIDR(address), "own");
  }
  return clients;
}
