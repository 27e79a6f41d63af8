/** A tracked connection, and what is known of it. */

import type { FrontendKind, IPFamily, Ownership, Protocol, ServiceKey } from "@fairlead/core";

/** A connection of a client with a service, as the connection tracking of one node knows it. JSON values only. */
export interface Flow extends Omit<TrackedConnection, "original" | "reply"> {
  readonly client: FlowSocket;
  /** What the client called. */
  readonly frontend: FlowSocket & { readonly kind: FrontendKind };
  readonly service: ServiceKey;
  /** Name of the service's port; "" where it has none. */
  readonly port: string;
  /** Who serves the service in that family. */
  readonly owner: Ownership;
  /** The node's agent carries it itself (userspace mode); without an endpoint it has none yet, or has ended. */
  readonly relayed?: true;
  /** Who answers; absent, where it is not relayed: nothing translated it here, it went on to the frontend itself. */
  readonly endpoint?: FlowEndpoint;
}

export interface FlowSocket {
  /** Canonical. */
  readonly address: string;
  readonly port: number;
}

export interface FlowEndpoint extends FlowSocket {
  readonly condition: EndpointCondition;
  /** Where the EndpointSlice says so. */
  readonly nodeName?: string;
}

/**
 * What the service's EndpointSlices say of an endpoint now. gone: it stands in none, and a connection that is still
 * there hangs.
 */
export type EndpointCondition = "ready" | "terminating" | "not-ready" | "gone";

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
  /** As the answer comes: its source is what answers, after every translation. */
  readonly reply: TrackedDirection;
  /** Of TCP and SCTP, as conntrack calls it: `ESTABLISHED`. */
  readonly state?: string;
  /** Whether anything was answered. */
  readonly replied: boolean;
  /** It is in a flowtable: its packets meet no rules, and state and expiry are not reported. */
  readonly offloaded?: true;
  /** Seconds until it is forgotten unless another packet comes; absent where that is not reported (it has ended). */
  readonly expires?: number;
  /** Both only where accounting is on (net.netfilter.nf_conntrack_acct). */
  readonly sent?: Volume;
  readonly received?: Volume;
}
