import type { IPFamily, Table } from "@fairlead/netfilter";
import type { Variant } from "../../iptables/variant.ts";

/** What a fake's rules can rely on alongside their own table. */
export interface FakeKernel {
  readonly family: IPFamily;
  readonly variant: Variant;
  /** Names of the ipsets that there are. */
  readonly sets: { has(name: string): boolean };
  /** Names of the nfacct objects that there are. */
  readonly nfacct: { has(name: string): boolean };
  /** Extensions that the tools have and this kernel has not. */
  readonly lacking: ReadonlySet<string>;
  /** Whether the tools have a match of that name. */
  knows(match: string): boolean;
}

/** Matches of iptables 1.8 alongside those that have types in @fairlead/netfilter. */
export const toolMatches: ReadonlySet<string> = new Set(
  `addrtype ah bpf cgroup cluster comment connbytes connlabel connlimit connmark conntrack cpu dccp devgroup dscp ecn esp
  hashlimit helper icmp icmp6 iprange ipvs length limit mac mark multiport nfacct osf owner physdev pkttype policy quota
  rateest realm recent rpfilter sctp set socket state statistic string tcp tcpmss time tos ttl udp u32`.split(/\s+/),
);

/** The hooks whose packets a target may see (nf_nat and ipt_REJECT of Linux), and the one table it works in. */
interface TargetLimits {
  readonly table: Table;
  readonly hooks: readonly string[];
}

/** @returns undefined for targets that work everywhere */
export function limitsOf(target: string): TargetLimits | undefined {
  switch (target) {
    case "dnat":
    case "redirect":
      return { table: "nat", hooks: ["PREROUTING", "OUTPUT"] };
    case "masquerade":
      return { table: "nat", hooks: ["POSTROUTING"] };
    case "reject":
      return { table: "filter", hooks: ["INPUT", "FORWARD", "OUTPUT"] };
    default:
      return undefined;
  }
}
