/** The packet that is traced, and what is refused in one. */

import { familyOf, parseAddress } from "@fairlead/base";
import type { ConntrackState, IPFamily, RuleSet, Table } from "@fairlead/netfilter";
import type { NftFamily, NftTable } from "@fairlead/netfilter/nft";

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

/** A packet or an environment that cannot be. The message names the field, its value, and what would be right. */
export class PacketError extends Error {
  override readonly name = "PacketError";
}

/** @throws PacketError for the first field that is wrong */
export function checkPacket(packet: Packet): void {
  const { family, protocol, source, destination, sport, dport, mark, state, dnat } = packet;
  if (family !== "IPv4" && family !== "IPv6") throw wrong("family", family, "must be IPv4 or IPv6");
  if (typeof protocol !== "string" || protocol === "") throw wrong("protocol", protocol, "must be a name, such as tcp");
  checkAddress("source", source, family);
  checkAddress("destination", destination, family);
  checkPort("sport", sport);
  checkPort("dport", dport);
  if (mark !== undefined && !isWhole(mark, 0xffffffff)) throw wrong("mark", mark, "must be a whole number of 32 bits");
  if (dnat === undefined) return;
  checkAddress("dnat.address", dnat.address, family);
  checkPort("dnat.port", dnat.port);
  if (state === undefined || state === "NEW") {
    throw wrong("dnat", dnat, "only a connection known before has a translation: state must not be NEW");
  }
}

/** @throws PacketError where a fact of the environment is not an address */
export function checkHostAddress(field: string, address: string): void {
  if (familyOfAddress(address) === undefined)
    throw new PacketError(`environment.${field}: ${text(address)} must be an IP address`);
}

/** A table of iptables, or one of nftables by its family and name: `ip kube-proxy`. */
export type TableName = Table | `${NftFamily} ${string}`;

const PORTS = "must be a whole number from 0 to 65535";

/** Undefined: not an address, whatever else was passed. An IPv4-mapped one is IPv6 here, as in the packet. */
function familyOfAddress(address: unknown): IPFamily | undefined {
  return typeof address === "string" && parseAddress(address) !== undefined ? familyOf(address) : undefined;
}

function checkAddress(field: string, address: string, family: Packet["family"]): void {
  if (familyOfAddress(address) !== family) throw wrong(field, address, `must be an ${family} address`);
}

function checkPort(field: string, port: number | undefined): void {
  if (port !== undefined && !isWhole(port, 0xffff)) throw wrong(field, port, PORTS);
}

function isWhole(value: number, most: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= most;
}

function wrong(field: string, value: unknown, right: string): PacketError {
  return new PacketError(`packet.${field}: ${text(value)} ${right}`);
}

function text(value: unknown): string {
  return typeof value === "number" ? String(value) : (JSON.stringify(value) ?? String(value));
}
