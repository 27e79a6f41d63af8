import type { IPFamily, Protocol } from "../family.ts";
import type { Direction } from "./parse-flow.ts";

/** Bytes and packets of one direction. */
export interface Volume {
  /** Bytes, headers of IP included. */
  readonly bytes: number;
  /** Packets. */
  readonly packets: number;
}

/** An entry of connection tracking in zone 0, both directions with their addresses and ports. */
export interface Connection {
  /** The family of its addresses. */
  readonly family: IPFamily;
  /** The transport protocol. */
  readonly protocol: Protocol;
  /** As the client sent its first packet. */
  readonly original: Direction;
  /** Its source answers, its destination is where the answer goes: the client, or the address that masquerades it. */
  readonly reply: Direction;
  /** Of TCP and SCTP, as conntrack calls it: `ESTABLISHED`. */
  readonly state?: string;
  /** Whether anything was answered. */
  readonly replied: boolean;
  /** It is in a flowtable: state and expiry are not reported, and its packets meet no rules. */
  readonly offloaded?: true;
  /** Seconds until it is forgotten unless another packet comes. */
  readonly expires?: number;
  /** Both only where accounting is on (net.netfilter.nf_conntrack_acct). */
  readonly sent?: Volume;
  /** What the client got. */
  readonly received?: Volume;
}

/** lost: the kernel had more to tell than was read in time, or tells no single ones. */
export type ConnectionEvent =
  | { readonly kind: "new" | "update" | "gone"; readonly connection: Connection }
  | { readonly kind: "lost" };
