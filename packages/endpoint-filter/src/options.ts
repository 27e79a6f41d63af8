/** What decides about ownership. */

import type { FilterEndpoint, Service, ServiceKey } from "@fairlead/core";
import type { CIDRSides } from "./sides.ts";

/** What decides about ownership: CIDRs, rules, annotations and where neither applies. */
export interface FilterOptions {
  /** CIDRs whose endpoints another network serves, checked by `parseExcludeCIDRs`. */
  readonly excludeCIDRs: readonly string[];
  /**
   * CIDRs of this proxy's own network inside wider excluded ones: the longest prefix that an address lies in decides,
   * the excluded one where both are the same. Default: none.
   */
  readonly ownCIDRs?: readonly string[];
  /** Addresses whose endpoints decide nothing and are never excluded: those of nodes. Default: none. */
  readonly neutralAddresses?: NeutralAddresses;
  /** Decides after the annotation and before the CIDRs; undefined: it says nothing of the service. Must be pure. */
  readonly rule?: (service: Service) => RuledOwner | undefined;
  /**
   * A service with endpoints on both sides: `own-endpoints` proxies to those outside of the excluded CIDRs, `skip`
   * skips the service, `all` proxies to every endpoint.
   */
  readonly mixedServices: "own-endpoints" | "skip" | "all";
  /**
   * What of a foreign service is left to its network: `all`, only the ClusterIP (`cluster-ip`), or the ClusterIP for
   * clients in the excluded CIDRs only (`excluded-clients`). Of a service that a rule made foreign the rule says it.
   */
  readonly excludedFrontends: "all" | "cluster-ip" | "excluded-clients";
  /**
   * Whether our own pods are masqueraded on the way to endpoints of another network that lie outside of
   * `clusterCIDRs`, which may send answers past this node. Default: where a service is divided between excluded clients
   * and all others.
   */
  readonly masqueradeToExcluded?: boolean;
  /** Where our own pods are, canonical: what lies in here knows the way back to them. Default: none. */
  readonly clusterCIDRs?: readonly string[];
  /** Whether the annotation `fairlead.dev/ownership` overrides the CIDRs. */
  readonly ownershipAnnotation: boolean;
  /** What learned CIDRs and rules never leave unanswered. Absent: nothing is learned, and there is no rule. */
  readonly protection?: Protection;
}

/** Services that must be answered here unless the operator's own list says otherwise. */
export interface Protection {
  /** `namespace/name`, in addition to the cluster's DNS. */
  readonly services: ReadonlySet<ServiceKey>;
  /** Those that the annotation may give away all the same. */
  readonly unprotected: ReadonlySet<ServiceKey>;
  /** The CIDRs that the operator wrote. */
  readonly written: CIDRSides;
}

/** What decides alongside the CIDRs. */
export type OtherOptions = Omit<FilterOptions, "excludeCIDRs" | "ownCIDRs">;

/** What a rule says of a service. */
export interface RuledOwner {
  /** Who serves it: this proxy, or another network's. */
  readonly ownership: "ours" | "foreign";
  /** A sentence for the operator: which rule, and what of the service it met. */
  readonly why: string;
  /**
   * What of a foreign service is left to its network, whatever `FilterOptions.excludedFrontends` has: a rule stands
   * where the addresses of endpoints do not lead to the pods. Default: `all`.
   */
  readonly excludedFrontends?: FilterOptions["excludedFrontends"];
}

/** The annotation of a Service or namespace that decides its ownership, whatever its endpoints are. */
export const OWNERSHIP_ANNOTATION = "fairlead.dev/ownership";

/**
 * Addresses that decide nothing, canonical. With the names of the nodes that have an address, the endpoints there that
 * run on one of these: a node that claims another network's address decides nothing about what runs elsewhere. `any`:
 * all endpoints there.
 */
export type NeutralAddresses = ReadonlyMap<string, ReadonlySet<string> | "any">;

/** Whether an endpoint is at the address of its own node, or at one that decides nothing wherever it runs. */
export function isNeutral(neutral: NeutralAddresses | undefined, { address, nodeName }: FilterEndpoint): boolean {
  const nodes = neutral?.get(address);
  if (nodes === undefined) return false;
  return nodes === "any" || (nodeName !== undefined && nodes.has(nodeName));
}
