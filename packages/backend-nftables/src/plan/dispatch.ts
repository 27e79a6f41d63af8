import { type NftFamily, type NftRule, statements } from "@fairlead/netfilter/nft";

/** Leads a packet where a map has it go, by its destination. */
export function dispatch(family: NftFamily, map: string): NftRule {
  return { expressions: statements.lookUp(family, ["daddr", "l4proto", "dport"], map, "verdict") };
}
