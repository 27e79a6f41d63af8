import type { RuleSet } from "@fairlead/netfilter";
import type { NftTable } from "@fairlead/netfilter/nft";
import { createTracer, type Environment, type Tracer } from "@fairlead/trace";

/** What the kernel of a node holds, as far as packets to services meet it. */
export interface KernelState {
  readonly ruleSet: RuleSet;
  /** In addition to those of iptables; absent: there are no others. */
  readonly nftables?: readonly NftTable[];
  readonly environment: Environment;
}

/** What a kernel held at one time, prepared for many packets. */
export interface View {
  readonly state: KernelState;
  readonly tracer: Tracer;
  readonly environment: Environment;
}

export function viewOf(state: KernelState): View {
  const { ruleSet, nftables = [], environment } = state;
  return { state, tracer: createTracer({ iptables: ruleSet, nftables }), environment };
}
