import type { SuggestedCIDR } from "@fairlead/inspect";
import type { LearnedOnce, OwnershipRow } from "@fairlead/intake";

/** `GET api/networks`: as `fairlead ownership -o json` has it, with the CIDRs that were given. */
export interface NetworksAnswer {
  readonly planAt: number;
  readonly cidrs: readonly { readonly cidr: string; readonly whose: "ours" | "another"; readonly from: string }[];
  /** What this console has learned of networks' objects, as the agents do; absent: they learn none. */
  readonly learned?: LearnedOnce["report"];
  readonly services: readonly OwnershipRow[];
  readonly suggestedCIDRs: readonly SuggestedCIDR[];
}

/** `GET api/networks/learned`: what the agent of a node has learned, as `fairlead ownership --on NODE -o json`. */
export interface LearnedAnswer {
  readonly node: string;
  readonly at: number;
  /** Absent: it learns none. */
  readonly networks?: LearnedOnce["report"];
}
