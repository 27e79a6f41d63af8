import type {
  ConntrackState,
  DestinationKey,
  IPFamily,
  Rule,
  RuleSet,
  Table,
  VirtualServerKey,
  VirtualServerState,
} from "@fairlead/netfilter";
import type { Hex, NftRule, NftTable, Verdict } from "@fairlead/netfilter/nft";
import type { TraceError } from "./errors.ts";
import type { TableName } from "./table-name.ts";

/** Netfilter's hooks, by the names of their built-in chains. */
export type Hook = "PREROUTING" | "INPUT" | "FORWARD" | "OUTPUT" | "POSTROUTING";

/**
 * Where a packet can be at a hook: in one of the tables, with the virtual servers of ip_vs, or at the routing decision
 * that falls there (of the host's own packets before OUTPUT and again where a translation or mark asks for it; after
 * PREROUTING).
 */
export type Stage = TableName | "ipvs" | "routing";

/** All rules that a packet may meet. */
export interface Rules {
  readonly iptables?: RuleSet;
  /** In the order in which they were made; those of another family than the packet's are not asked. */
  readonly nftables?: readonly NftTable[];
}

/** An address and, for protocols that have ports, a port. */
export interface Endpoint {
  /** Canonical address without a length. */
  readonly address: string;
  readonly port?: number;
}

/** One packet as the kernel gets it, before any translation. */
export interface Packet {
  /** Must be the family of both addresses. */
  readonly family: IPFamily;
  /** As iptables-save writes it: tcp, udp, sctp, icmp, ipv6-icmp, … */
  readonly protocol: string;
  readonly source: string;
  readonly destination: string;
  readonly sport?: number;
  readonly dport?: number;
  /** The interface that it arrives on. Absent: this host made the packet, it begins at OUTPUT. */
  readonly inInterface?: string;
  /** fwmark, 32 bits; default 0. */
  readonly mark?: number;
  /** Of the connection that it belongs to; default NEW. nat tables are asked for NEW only. */
  readonly state?: Exclude<ConntrackState, "SNAT" | "DNAT">;
  /**
   * Where the connection's entry translates the destination to: for packets of a connection that was translated before.
   */
  readonly dnat?: Endpoint;
}

/** Entries of `xt_recent` lists: list name → address → seconds since each time it was seen there. */
export type RecentLists = ReadonlyMap<string, ReadonlyMap<string, readonly number[]>>;

/** What an ipset is asked about. Ports are absent where the protocol has none. */
export interface SetQuery {
  readonly family: IPFamily;
  readonly protocol: string;
  readonly source: Endpoint;
  readonly destination: Endpoint;
  /** One for each dimension of the set. */
  readonly flags: readonly ("src" | "dst")[];
}

export interface PacketSet {
  matches(query: SetQuery): boolean;
}

/** What the kernel decides about a packet's route by: its tables, and the rules of policy routing. */
export interface RouteQuery {
  readonly family: IPFamily;
  readonly destination: string;
  /** Absent: whatever sends it on has no source for it yet (ip_vs). */
  readonly source?: string;
  /** The interface that it came in by; absent: it is the host's own. */
  readonly inInterface?: string;
  readonly mark: number;
  readonly protocol: string;
  readonly sport?: number;
  readonly dport?: number;
}

export type RouteAnswer =
  | { readonly kind: "local" }
  | { readonly kind: "unicast"; readonly outInterface: string }
  /** No route takes it. */
  | {
      readonly kind: "refused";
      /** Why, `no route to 10.144.2.6`. */
      readonly problem: string;
      /** What the sender is told; absent: nothing, the packet is dropped. */
      readonly rejectWith?: string;
    }
  /** It cannot be told; the packet goes on as without `Environment.route`. */
  | { readonly kind: "unknown"; readonly problem: string };

/** The host that the packet meets. Everything may be left out; a rule that asks for an absent fact is an error. */
export interface Environment {
  /** The host's own addresses; 127.0.0.0/8 and ::1 are always among them. */
  readonly localAddresses?: Iterable<string>;
  /** Broadcast addresses beside 255.255.255.255. */
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
  readonly recent?: RecentLists;
  /** What packets before this one put into sets of nftables, beside the elements that the tables have. */
  readonly remembered?: readonly Remembered[];
  readonly sets?: ReadonlyMap<string, PacketSet>;
  /** Absent: there are no virtual servers. */
  readonly ipvs?: Ipvs;
}

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

/** An element that a packet put into a set of nftables, or took out of it. */
export interface Remembered {
  /** `ip kube-proxy` */
  readonly table: TableName;
  readonly set: string;
  readonly key: Hex;
  /** Of a map. */
  readonly value?: Hex | Verdict;
  readonly deleted?: true;
}

/** A rule that matched, in the order of the packet's way. */
export type Visit = IptablesVisit | NftVisit;

interface VisitPlace {
  readonly hook: Hook;
  readonly chain: string;
  /** Place of the rule in its chain, from 0. */
  readonly index: number;
}

export interface IptablesVisit extends VisitPlace {
  readonly table: Table;
  readonly rule: Rule;
}

export interface NftVisit extends VisitPlace {
  readonly table: TableName;
  readonly nft: { readonly table: NftTable; readonly rule: NftRule };
}

/** What a way takes for granted of a rule that can't be decided. */
export type Assumption = Visit & {
  readonly matched: boolean;
  /** Why it can't be decided. */
  readonly problem: string;
};

/** A way that nobody can follow to its end. */
export interface Undecided {
  /** As of an outcome. */
  readonly probability: number;
  /** The rule, and what of it can't be decided. */
  readonly problem: TraceError;
  readonly visits: readonly Visit[];
  readonly assumed: readonly Assumption[];
}

/** What can be told of a packet where not all rules can be decided. */
export interface Exploration {
  readonly outcomes: readonly Outcome[];
  readonly undecided: readonly Undecided[];
}

/** One way that the packet may take, with what becomes of it. */
export interface Outcome {
  /**
   * Product of the random choices on the way: 0 < probability ≤ 1. The outcomes of a packet sum up to 1; those of an
   * exploration do for each way in which its assumptions may turn out.
   */
  readonly probability: number;
  readonly verdict: "accept" | "reject" | "drop";
  /** Type of the ICMP message or tcp-reset, where the verdict is reject. */
  readonly rejectWith?: string;
  /** Why no route takes the packet, where it ended at the stage routing. */
  readonly noRoute?: string;
  /**
   * What of its routes could not be told: whether it gets there depends on that. Absent without `Environment.route`.
   */
  readonly routeUnknown?: string;
  /** Where it ended: hook and table of the verdict; for accept the last of the way. */
  readonly hook: Hook;
  readonly table: Stage;
  /** Only of accepted packets: delivered on this host, sent on for another host, or sent by this one. */
  readonly path?: "input" | "forward" | "output";
  /** After translation; equal to the packet's where nothing translates. */
  readonly destination: Endpoint;
  /**
   * A DNAT or REDIRECT rule or a virtual server took the packet, or (`Packet.dnat`) had taken its connection before.
   */
  readonly translated: boolean;
  readonly redirected: boolean;
  /** The virtual server that took the packet; where the verdict is reject at the stage ipvs, it had no destination. */
  readonly virtualServer?: VirtualServerKey;
  /** What a persistent server now knows of the client. */
  readonly template?: PersistenceTemplate;
  /** MASQUERADE or SNAT gave it another source. */
  readonly masqueraded: boolean;
  /** After that, as far as the environment tells. */
  readonly source: Endpoint;
  readonly mark: number;
  /** As far as the environment tells. */
  readonly outInterface?: string;
  /** The rules that matched on the way. */
  readonly visits: readonly Visit[];
  /** Only of an exploration: what has to be so for the packet to take this way. Absent: nothing, it is certain. */
  readonly assumed?: readonly Assumption[];
  /** Addresses that `-m recent --set` put into lists on the way. */
  readonly recentlySeen: readonly { readonly list: string; readonly address: string }[];
  /** What the packet put into sets of nftables on the way, or took out of them. */
  readonly remembered: readonly Remembered[];
}
