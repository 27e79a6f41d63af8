import type { DestinationKey, VirtualServerKey, VirtualServerState } from "@fairlead/netfilter";

/**
 * Virtual servers and the settings that decide about their packets. The kernel asks them of packets for this host and
 * of its own, so an address that no interface has (`localAddresses`) is reached by the latter only.
 */
export interface Ipvs {
  readonly servers: Iterable<VirtualServerState>;
  /**
   * net.ipv4.vs.conntrack: without it nothing that a virtual server sends on is masqueraded. Default false, as the
   * kernel's.
   */
  readonly conntrack?: boolean;
  /**
   * net.ipv4.vs.expire_quiescent_template: whether a destination of weight 0 loses its clients. Default false, as the
   * kernel's.
   */
  readonly expireQuiescentTemplate?: boolean;
  /** Clients that persistent servers know. */
  readonly templates?: readonly PersistenceTemplate[];
}

/** A client stays with the destination that it once got. */
export interface PersistenceTemplate {
  readonly server: VirtualServerKey;
  readonly client: string;
  readonly destination: DestinationKey;
}
