/** spec of a coordination.k8s.io/v1 Lease, as client-go's candidates write it. */
export interface LeaseRecord {
  /** "": released. */
  readonly holderIdentity: string;
  readonly leaseDurationSeconds: number;
  /** RFC 3339 with microseconds. */
  readonly acquireTime: string;
  readonly renewTime: string;
  readonly leaseTransitions: number;
}

/** The record by which a candidate takes the lease, or goes on holding it. */
export function heldAgain(old: LeaseRecord | undefined, identity: string, seconds: number, now: number): LeaseRecord {
  const time = microTime(now);
  const isOwn = old?.holderIdentity === identity;
  return {
    holderIdentity: identity,
    leaseDurationSeconds: seconds,
    acquireTime: isOwn ? old.acquireTime : time,
    renewTime: time,
    leaseTransitions: old === undefined ? 0 : old.leaseTransitions + (isOwn ? 0 : 1),
  };
}

/** As client-go releases it: without a holder, for a second. */
export function released(old: LeaseRecord, now: number): LeaseRecord {
  const time = microTime(now);
  return { ...old, holderIdentity: "", leaseDurationSeconds: 1, acquireTime: time, renewTime: time };
}

/** metav1.MicroTime. */
function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}
