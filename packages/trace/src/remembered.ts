import type { Hex, Verdict } from "@fairlead/netfilter/nft";
import type { TableName } from "./table-name.ts";

/** An element that a packet put into a set of nftables, or took out of it. */
export interface Remembered {
  /** `ip kube-proxy` */
  readonly table: TableName;
  /** The name of the set or map. */
  readonly set: string;
  /** The element's key, as the kernel has it in its registers. */
  readonly key: Hex;
  /** Of a map. */
  readonly value?: Hex | Verdict;
  /** The rule removed the element; absent: it added or updated it. */
  readonly deleted?: true;
  /** After which it goes, milliseconds, as the rule or the set says. */
  readonly timeout?: number;
}
