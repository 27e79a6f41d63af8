import type { IPFamily } from "@fairlead/core";
import type { Agreement } from "@fairlead/inspect";
import type { NftTable } from "@fairlead/netfilter/nft";

/** How the kernel agrees with the plan in one family. */
export interface FamilyAgreement {
  readonly family: IPFamily;
  readonly agreement: Agreement;
  /** The kernel's tables of nftables alongside those of iptables. */
  readonly nftables: readonly NftTable[];
}
