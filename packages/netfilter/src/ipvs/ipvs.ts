import type { IPFamily } from "../rule/rule.ts";

/** What identifies a virtual server. (Those by firewall mark are skipped.) */
export interface VirtualServerKey {
  readonly family: IPFamily;
  readonly protocol: "TCP" | "UDP" | "SCTP";
  /** Canonical address. */
  readonly address: string;
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

export interface DestinationKey {
  /** Canonical address. */
  readonly address: string;
  readonly port: number;
}

export interface Destination extends DestinationKey {
  /** 0: gets no new connections. */
  readonly weight: number;
  /** masquerade: destination NAT, `-m`; the other two change nothing in the packet or wrap it. */
  readonly forwarding: "masquerade" | "route" | "tunnel";
}

/** A virtual server with everything behind it, as `ipvsadm --save` gives it. */
export interface VirtualServerState extends VirtualServer {
  readonly destinations: readonly Destination[];
}

/** What `ipvsadm --list` tells of the connections to a server's destinations. */
export interface ServerConnections extends VirtualServerKey {
  readonly destinations: readonly DestinationConnections[];
}

export interface DestinationConnections extends Destination {
  readonly active: number;
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
