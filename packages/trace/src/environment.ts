/** What a packet meets outside of rules: routes, sets, recent lists, and what is remembered of connections. */

import type { DestinationKey, IPFamily, VirtualServerKey, VirtualServerState } from "@fairlead/netfilter";
import type { Hex, Verdict } from "@fairlead/netfilter/nft";
import type { Endpoint, TableName } from "./packet.ts";

/** Entries of `xt_recent` lists: list name → address → seconds since each time it was seen there. */
export type RecentLists = ReadonlyMap<string, ReadonlyMap<string, readonly number[]>>;

/** What an ipset is asked about. Ports are absent where the protocol has none. */
export interface SetQuery {
  /** The family of both addresses. */
  readonly family: IPFamily;
  /** As in `Packet.protocol`. */
  readonly protocol: string;
  /** Where the packet comes from, as it is at this rule. */
  readonly source: Endpoint;
  /** Where the packet goes, as it is at this rule. */
  readonly destination: Endpoint;
  /** One for each dimension of the set. */
  readonly flags: readonly ("src" | "dst")[];
}

/** The members of an ipset, for `-m set`. */
export interface PacketSet {
  /** Whether the set has what the query asks for, in the dimensions of its flags. */
  matches(query: SetQuery): boolean;
}

/** What the kernel decides about a packet's route by: its tables, and the rules of policy routing. */
export interface RouteQuery {
  /** The family of the destination. */
  readonly family: IPFamily;
  /** Canonical address that a route is looked up for. */
  readonly destination: string;
  /** Absent: whatever sends it on has no source for it yet (ip_vs). */
  readonly source?: string;
  /** The interface that it came in by; absent: it is the host's own. */
  readonly inInterface?: string;
  /** fwmark at this point, 32 bits; policy routing may select by it. */
  readonly mark: number;
  /** As in `Packet.protocol`. */
  readonly protocol: string;
  /** Source port, where the protocol has one. */
  readonly sport?: number;
  /** Destination port, where the protocol has one. */
  readonly dport?: number;
}

/** What the kernel does with a packet: delivers it here, sends it on, refuses it; or that this cannot be said. */
export type RouteAnswer =
  | { readonly kind: "local" }
  | { readonly kind: "unicast"; readonly outInterface: string }
  /** No route takes it. */
  | {
      readonly kind: "refused";
      /** Why, `no route to 10.144.2.6`. */
      readonly problem: string;
      /** What the sender is sent; absent: nothing, the packet is dropped. */
      readonly rejectWith?: string;
    }
  /** It is unknown; the packet continues as without `Environment.route`. */
  | { readonly kind: "unknown"; readonly problem: string };

/** The host that the packet meets. Everything may be left out; a rule that asks for an absent fact is an error. */
export interface Environment {
  /** The host's own addresses; 127.0.0.0/8 and ::1 are always among them. */
  readonly localAddresses?: Iterable<string>;
  /** Broadcast addresses alongside 255.255.255.255. */
  readonly broadcastAddresses?: Iterable<string>;
  /** The interface that packets to the address leave by; lo for the host's own. */
  readonly outInterface?: (destination: string) => string | undefined;
  /**
   * The host's routing decision. Absent: routes are not known; what is for an address of the host is for the host, and
   * all else is sent on, by `outInterface`.
   */
  readonly route?: (query: RouteQuery) => RouteAnswer;
  /**
   * The address that MASQUERADE takes on the interface; default: the first of `localAddresses` in the packet's family.
   */
  readonly masqueradeAddress?: (outInterface: string | undefined) => string | undefined;
  /**
   * The address that REDIRECT takes of what comes in by the interface: its first; default: the first of
   * `localAddresses`.
   */
  readonly redirectAddress?: (inInterface: string) => string | undefined;
  /** Whether the packet came in by a bridge's port, goes out by one, is bridged (`-m physdev`); default: none of it. */
  readonly physdev?: { readonly in?: boolean; readonly out?: boolean };
  /** Entries of lists for `-m recent`; absent: rules that ask for one are an error. */
  readonly recent?: RecentLists;
  /** What packets before this one put into sets of nftables, alongside the elements that the tables have. */
  readonly remembered?: readonly Remembered[];
  /** Ipsets by name, for `-m set`; absent: rules that ask for one are an error. */
  readonly sets?: ReadonlyMap<string, PacketSet>;
  /** Absent: there are no virtual servers. */
  readonly ipvs?: Ipvs;
}

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

/** An element that a packet put into a set of nftables, or took out of it. */
export interface Remembered {
  /** `ip kube-proxy` */
  readonly table: TableName;
  /** The name of the set or map. */
  readonly set: string;
  /** The element's key, as the kernel has it in its registers. */
  readonly key: Hex;
  /** Of a map. */
  readonly value?: Hex | Verdict;
  /** The rule removed the element; absent: it added or updated it. */
  readonly deleted?: true;
  /** After which it goes, milliseconds, as the rule or the set says. */
  readonly timeout?: number;
}
