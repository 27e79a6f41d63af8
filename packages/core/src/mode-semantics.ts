/**
 * Where the meaning of a mode differs from another's, told by the backend and applied by the planner, so that no
 * backend decides anything itself.
 */
export interface ModeSemantics {
  /**
   * iptables, nftables: pods and the node itself reach external frontends under Local by the cluster set. ipvs has no
   * such short cut.
   */
  readonly localSourcesShortCut: boolean;
  /**
   * A Local frontend while its local set is empty and the cluster set is not: "drop", or (ipvs) "cluster": the cluster
   * set unmasqueraded if the service uses cluster endpoints at all, else proxied to an empty local set.
   */
  readonly localWithoutEndpoints: "drop" | "cluster";
  /** No endpoint at all: "reject", or (ipvs) "empty": proxied to an empty set. */
  readonly withoutEndpoints: "reject" | "empty";
  /**
   * What `PlanCounts.noLocalEndpoints` counts; absent: service ports. (ipvs) services, however many of their ports it
   * is.
   */
  readonly noLocalCounts?: "services";
  /**
   * Whether it can serve an address to some clients and leave it to another network for others; absent: it cannot, and
   * such an address is left for all.
   */
  readonly excludesClients?: true;
  /**
   * (iptables) External addresses without endpoints are refused in INPUT and FORWARD only: what the node itself sends
   * there leaves it, and is refused by the host with the address. Absent: they are refused to all.
   */
  readonly letsNodeOut?: true;
  /** Whether it can balance by a hash of the client's address; absent: it cannot. */
  readonly sourceHash?: true;
}
