import type { Rule } from "@fairlead/netfilter";

/** A chain with everything in it. */
export interface ChainRules {
  readonly chain: string;
  readonly rules: readonly Rule[];
}
