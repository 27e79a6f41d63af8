import type { DecidedBy, Ownership, OwnershipDecision } from "../filter.ts";
import type { IPFamily, ServiceKey } from "../objects.ts";
import type { PlanChange, ServicePortGroup } from "../plan.ts";
import type { Problem } from "../problem.ts";

/** One update of the ownership memory that the caller has to keep; without `ownership` the entry is to be forgotten. */
export interface MemoryUpdate {
  /** The service that was decided. */
  readonly service: ServiceKey;
  /** The family that was decided. */
  readonly family: IPFamily;
  /** What to keep. */
  readonly ownership?: Ownership;
}

/** A service went from one owner to another; one log line. */
export interface OwnershipChange {
  /** The service that changed hands. */
  readonly service: ServiceKey;
  /** The family in which it did. */
  readonly family: IPFamily;
  /** The owner before. */
  readonly from: Ownership;
  /** The owner from now on. */
  readonly to: Ownership;
  /** A sentence for the operator. */
  readonly why: string;
  /** What decided; absent where the service is gone. */
  readonly decidedBy?: DecidedBy;
}

/** The decision that holds for a service in one family. */
export interface ServiceOwnership {
  /** The service that the decision is about. */
  readonly service: ServiceKey;
  /** The family that it is about. */
  readonly family: IPFamily;
  /** The decision itself, with its reasons. */
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
  /** Updates of the ownership memory, in the order in which they were decided. */
  readonly memory: readonly MemoryUpdate[];
  /** Services that changed hands, for the log. */
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
