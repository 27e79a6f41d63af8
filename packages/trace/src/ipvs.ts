import type { DestinationKey, VirtualServerKey, VirtualServerState } from "@fairlead/netfilter";

/**
 * Virtual servers and the settings that decide about their packets. The kernel asks them of packets for this host and
 * of its own, so an address that no interface has (`localAddresses`) is reached by the latter only.
 */
export interface Ipvs {
  /** All virtual servers of the host with their destinations. */
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
  /** The virtual server that the client asked. */
  readonly server: VirtualServerKey;
  /** Canonical address of the client, masked as the server's persistence says. */
  readonly client: string;
  /** The destination that it stays with. */
  readonly destination: DestinationKey;
}
