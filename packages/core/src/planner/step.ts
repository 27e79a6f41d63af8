import type { DecidedBy, Ownership, OwnershipDecision } from "../filter.ts";
import type { IPFamily, ServiceKey } from "../objects.ts";
import type { PlanChange, ServicePortGroup } from "../plan.ts";
import type { Problem } from "../problem.ts";

/** One update of the ownership memory that the caller has to keep; without `ownership` the entry is to be forgotten. */
export interface MemoryUpdate {
  readonly service: ServiceKey;
  readonly family: IPFamily;
  readonly ownership?: Ownership;
}

/** A service went from one owner to another; one log line. */
export interface OwnershipChange {
  readonly service: ServiceKey;
  readonly family: IPFamily;
  readonly from: Ownership;
  readonly to: Ownership;
  readonly why: string;
  readonly decidedBy?: DecidedBy;
}

/** The decision that holds for a service in one family. */
export interface ServiceOwnership {
  readonly service: ServiceKey;
  readonly family: IPFamily;
  readonly decision: OwnershipDecision;
}

/** A group as it was, with those frontends only that another network has taken over. */
export interface ReleasedGroup extends ServicePortGroup {
  /** The CIDRs of the clients that the other network has taken over, canonical; absent: all clients. */
  readonly clients?: readonly string[];
  /**
   * Present where it is unknown which endpoints it was proxied to, since another process did that: whether an
   * address may be one of the other network's, so that a flow that it answers need not be ours.
   */
  readonly mayBeForeign?: (address: string) => boolean;
}

/** What one planning step came to. */
export interface PlanStep {
  /** The families in which anything changed. */
  readonly changes: ReadonlyMap<IPFamily, PlanChange>;
  readonly memory: readonly MemoryUpdate[];
  readonly ownershipChanges: readonly OwnershipChange[];
  /**
   * What another network has taken over in this step. Flows that our own DNAT made are to be deleted once
   * (`releasedFlows`).
   */
  readonly released: readonly ReleasedGroup[];
  /** Bad annotations and frontends that two services claim, each reported once when it begins. */
  readonly problems: readonly Problem[];
}

/** Gauges of one family, kept up with every change. */
export interface PlanCounts {
  /** Services that have a ClusterIP in the family, by ownership. */
  readonly services: Readonly<Record<Ownership, number>>;
  /** Distinct endpoint addresses left out by the filter, summed over services. */
  readonly endpointsExcluded: number;
  /** Service ports with endpoints but none here, under internal and external policy Local. */
  readonly noLocalEndpoints: { readonly internal: number; readonly external: number };
}
