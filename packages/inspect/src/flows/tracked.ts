import type { IPFamily, Protocol } from "@fairlead/core";

/** One direction of a connection; canonical addresses. */
export interface TrackedDirection {
  readonly source: string;
  readonly destination: string;
  readonly sourcePort: number;
  readonly destinationPort: number;
}

/** Bytes and packets of one direction. */
export interface Volume {
  readonly bytes: number;
  readonly packets: number;
}

/** An entry of connection tracking (zone 0), as `@fairlead/kernel` lists it. */
export interface TrackedConnection {
  readonly family: IPFamily;
  readonly protocol: Protocol;
  /** As the client sent it. */
  readonly original: TrackedDirection;
  /** As the answer comes: its source is who answers, after every translation. */
  readonly reply: TrackedDirection;
  /** Of TCP and SCTP, as conntrack calls it: `ESTABLISHED`. */
  readonly state?: string;
  /** Whether anything was answered. */
  readonly replied: boolean;
  /** It is in a flowtable: its packets meet no rules, and state and expiry are not reported. */
  readonly offloaded?: true;
  /** Seconds until it is forgotten unless another packet comes; absent where that is not told (it has ended). */
  readonly expires?: number;
  /** Both only where accounting is on (net.netfilter.nf_conntrack_acct). */
  readonly sent?: Volume;
  readonly received?: Volume;
}
