import type { RuleList } from "@fairlead/netfilter";

/** A chain with everything in it. */
export interface ChainRules {
  readonly chain: string;
  readonly rules: RuleList;
}
