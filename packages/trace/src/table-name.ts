import type { Table } from "@fairlead/netfilter";
import type { NftFamily } from "@fairlead/netfilter/nft";

/** A table of iptables, or one of nftables by its family and name: `ip kube-proxy`. */
export type TableName = Table | `${NftFamily} ${string}`;
