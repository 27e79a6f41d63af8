import type { IPFamily, LocalTrafficDetector } from "@fairlead/core";
import type { Rule, Table } from "@fairlead/netfilter";
import type { BarredAddress } from "./group.ts";
import type { SetKey } from "./sets.ts";

/** What the iptables rules around the virtual servers depend on. The services themselves are in the sets. */
export interface FrameFacts {
  readonly family: IPFamily;
  readonly mark: number;
  readonly detector: LocalTrafficDetector;
  /** Even this node's pods are masqueraded on their way to every cluster IP. */
  readonly masqueradeAll: boolean;
  /** Sets that have a member: the rules of most sets are there only while it is so. */
  readonly filled: ReadonlySet<SetKey>;
  readonly barred: readonly BarredAddress[];
}

export interface ChainRules {
  readonly chain: string;
  readonly rules: readonly Rule[];
}

/**
 * The tables that this mode has chains in. Nat comes first: packets are marked there before filter asks for the mark.
 */
export const TABLES = ["nat", "filter"] as const satisfies readonly Table[];

export type FrameTable = (typeof TABLES)[number];
