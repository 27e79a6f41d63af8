import type { IPFamily, Service, ServiceKey, SliceEndpoint } from "./objects.ts";

/** Who serves a service in one family. mixed: this proxy, with a part of the endpoints. */
export type Ownership = "ours" | "foreign" | "mixed";

/** What of an endpoint decides whose it is. */
export type FilterEndpoint = Pick<SliceEndpoint, "address" | "nodeName">;

/** Last decided ownership by service and family: an argument and a result of planning, never a hidden state. */
export interface OwnershipMemory {
  /** The last decision for a service in a family; undefined where there was none. */
  get(service: ServiceKey, family: IPFamily): Ownership | undefined;
  /**
   * The services that it knows. With it a plan of everything also forgets services that went while it did not watch.
   */
  services?(): Iterable<ServiceKey>;
}

/**
 * What a decision rests on: an annotation, a rule, where the endpoints are, what was before there were none, or that
 * the service is the API server's own.
 */
export type DecidedBy = "annotation" | "rule" | "endpoints" | "memory" | "protected";

/** Who owns a service in one family, and why. */
export interface OwnershipDecision {
  /**
   * `ours`: this proxy serves it. `foreign`: another network's does. `mixed`: this proxy does, with a part of the
   * endpoints.
   */
  readonly ownership: Ownership;
  /**
   * False: no decision could be made from the objects (no endpoints); what the memory said goes on and is not
   * rewritten.
   */
  readonly decided: boolean;
  /** A sentence for the operator: which CIDRs, annotation or memory decided. */
  readonly why: string;
  /** Absent: the filter does not say. */
  readonly decidedBy?: DecidedBy;
  /**
   * What this proxy programs of the service: everything, everything with the ClusterIP for clients that are none of
   * `EndpointFilter.excludedClients`, all but the ClusterIP, or nothing.
   */
  readonly frontends: "all" | "all-but-excluded-clients" | "all-but-cluster-ip" | "none";
  /** The endpoints to leave out before any selection; absent: none. */
  readonly excludes?: (endpoint: FilterEndpoint) => boolean;
  /** The excluded CIDRs that contain at least one endpoint, canonical, sorted. */
  readonly decidingCIDRs: readonly string[];
  /** Distinct endpoint addresses outside and inside of the excluded CIDRs, ready or not. */
  readonly ownEndpoints: number;
  /** Those inside of them, counted in the same way. */
  readonly excludedEndpoints: number;
  /** It must be answered here: a mode that cannot distinguish clients serves it to all of them. Absent: no. */
  readonly protected?: true;
  /**
   * Our own pods are masqueraded on the way to its endpoints: another network has them, and sends answers past this
   * node. Absent: as the endpoints of each service.
   */
  readonly masqueradesPods?: true;
  /** Something about the object that its owner should know (a bad annotation value); reported once. */
  readonly problem?: string;
}

/** Decides which services and endpoints are ours. Must be pure: same arguments, same decision. */
export interface EndpointFilter {
  /**
   * Decides which network owns a service in one family.
   *
   * @param endpoints all endpoints of the service in this family, ready or not, of all its ports
   * @param remembered what the memory holds for the service and family
   */
  decide(
    service: Service,
    family: IPFamily,
    endpoints: Iterable<FilterEndpoint>,
    remembered: Ownership | undefined,
  ): OwnershipDecision;
  /**
   * Whether an address lies in another network, whatever service has it. Absent: unknown, and no flow of a
   * service that another network took over while no proxy ran counts as ours.
   *
   * @param address canonical
   */
  isForeign?(address: string): boolean;
  /**
   * The CIDRs whose clients another network serves itself, where a decision says so: canonical, disjoint, sorted, and
   * the same list each time. Absent: no decision does.
   */
  excludedClients?(family: IPFamily): readonly string[];
}
