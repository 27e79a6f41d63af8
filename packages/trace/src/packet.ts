import type { ConntrackState, IPFamily, RuleSet } from "@fairlead/netfilter";
import type { NftTable } from "@fairlead/netfilter/nft";
import type { TableName } from "./table-name.ts";

/** Netfilter's hooks, by the names of their built-in chains. */
export type Hook = "PREROUTING" | "INPUT" | "FORWARD" | "OUTPUT" | "POSTROUTING";

/**
 * Where a packet can be at a hook: in one of the tables, with the virtual servers of ip_vs, or at the routing decision
 * that falls there (of the host's own packets before OUTPUT and again where a translation or mark asks for it; after
 * PREROUTING).
 */
export type HookStage = TableName | "ipvs" | "routing";

/** All rules that a packet may meet. */
export interface Rules {
  /** The tables of iptables in the packet's family; absent: there are none. */
  readonly iptables?: RuleSet;
  /** In the order in which they were made; those of another family than the packet's are not asked. */
  readonly nftables?: readonly NftTable[];
}

/** An address and, for protocols that have ports, a port. */
export interface Endpoint {
  /** Canonical address without a length. */
  readonly address: string;
  /** 1 to 65535; absent where the protocol has no ports. */
  readonly port?: number;
}

/** One packet as the kernel gets it, before any translation. */
export interface Packet {
  /** Must be the family of both addresses. */
  readonly family: IPFamily;
  /** As iptables-save writes it: tcp, udp, sctp, icmp, ipv6-icmp, … */
  readonly protocol: string;
  /** Canonical address without a length. */
  readonly source: string;
  /** Canonical address without a length, before any translation. */
  readonly destination: string;
  /** Source port, 1 to 65535; absent where the protocol has none. */
  readonly sport?: number;
  /** Destination port, 1 to 65535; absent where the protocol has none. */
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
