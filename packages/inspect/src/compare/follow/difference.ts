import type { IPFamily } from "@fairlead/core";

/**
 * How a packet fares otherwise than the plan wants. missing: nothing takes it. extra: something takes it that no
 * service wants. endpoints: it comes to others. shares: to the same ones, with other weights. masquerade: from another
 * source. verdict: it is rejected, dropped or let in where it is not to be. affinity: the client is not remembered, or
 * not as long. unknown: it is unknown what becomes of it.
 */
export const DIFFERENCE_KINDS = [
  "missing",
  "extra",
  "endpoints",
  "shares",
  "masquerade",
  "verdict",
  "affinity",
  "unknown",
] as const;

export type DifferenceKind = (typeof DIFFERENCE_KINDS)[number];

/** One kind of packet with which something else happens than the plan wants. */
export interface Difference {
  readonly kind: DifferenceKind;
  /** `tcp 198.51.100.7 → 10.96.0.80:80 (outside)` */
  readonly packet: string;
  /** Where the plan wants it to end: `10.144.1.5:8080 50 %, …`, `reject`, `drop`. */
  readonly wanted: string;
  /** Where it ends. */
  readonly found: string;
}

/** A service port, or a destination that no service has, and what is different about it. */
export interface DifferenceTarget {
  /** Unique in its family. */
  readonly id: string;
  readonly family: IPFamily;
  /** `namespace/name:port`, or `tcp 10.96.0.80:80`. */
  readonly name: string;
  /** Of the Service, absent where the cluster has none. */
  readonly service?: { readonly namespace: string; readonly name: string };
}
