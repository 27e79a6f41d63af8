import type { Hex } from "@fairlead/netfilter/nft";

/** Endpoints as they stand under one frontend's key in a pool, whatever their slots are. */
export interface Pooled {
  /** `endpoints`, `nodeport-local-endpoints`, … */
  readonly pool: string;
  /** `ip daddr . meta l4proto . th dport`, or without the address. */
  readonly key: Hex;
  /** The key as nft prints it. */
  readonly frontend: string;
  /** `10.144.1.5 . 8080` */
  readonly endpoints: Set<string>;
}
