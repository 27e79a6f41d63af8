import type { IPFamily } from "../rule/rule.ts";

/** What identifies a virtual server. (Those by firewall mark are skipped.) */
export interface VirtualServerKey {
  /** The family of the address. */
  readonly family: IPFamily;
  /** The transport protocol. */
  readonly protocol: "TCP" | "UDP" | "SCTP";
  /** Canonical address. */
  readonly address: string;
  /** 1 to 65535, or 0 for every port. */
  readonly port: number;
}

export interface VirtualServer extends VirtualServerKey {
  /** The kernel's name of the scheduler: rr, wrr, lc, … */
  readonly scheduler: string;
  /** `-b` flags as ipvsadm prints them, sorted: mh-port, sh-port, … */
  readonly flags: readonly string[];
  /** Seconds for which a client stays with its destination; absent: no persistence. */
  readonly persistenceSeconds?: number;
  /** Further options of the save that have no field here (`-o`, `-M 255.255.255.0`), word for word. */
  readonly others?: readonly string[];
}

/** What identifies a destination of a virtual server. */
export interface DestinationKey {
  /** Canonical address. */
  readonly address: string;
  /** 1 to 65535. */
  readonly port: number;
}

/** A destination of a virtual server: a real server in ipvsadm's words. */
export interface Destination extends DestinationKey {
  /** 0: gets no new connections. */
  readonly weight: number;
  /** masquerade: destination NAT, `-m`; the other two change nothing in the packet or wrap it. */
  readonly forwarding: "masquerade" | "route" | "tunnel";
}

/** A virtual server with everything behind it, as `ipvsadm --save` gives it. */
export interface VirtualServerState extends VirtualServer {
  /** In the order of the save. */
  readonly destinations: readonly Destination[];
}

/** What `ipvsadm --list` tells of the connections to a server's destinations. */
export interface ServerConnections extends VirtualServerKey {
  /** In the order of the listing. */
  readonly destinations: readonly DestinationConnections[];
}

/** A destination with its connections. */
export interface DestinationConnections extends Destination {
  /** Connections that are established. */
  readonly active: number;
  /** Connections in every other state. */
  readonly inactive: number;
}

/** A change of one virtual server or destination: a netlink request, or one line of `ipvsadm --restore`. */
export type ServerCommand =
  | { readonly kind: "add-server" | "edit-server"; readonly server: VirtualServer }
  | { readonly kind: "delete-server"; readonly server: VirtualServerKey }
  | {
      readonly kind: "add-destination" | "edit-destination";
      readonly server: VirtualServerKey;
      readonly destination: Destination;
    }
  | { readonly kind: "delete-destination"; readonly server: VirtualServerKey; readonly destination: DestinationKey };
