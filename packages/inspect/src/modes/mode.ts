import type { AgentConfig, LoopbackNodePorts } from "@fairlead/config";
import type { ForwardingPlan, IPFamily, ModeFacts } from "@fairlead/core";
import type { NftTable } from "@fairlead/netfilter/nft";
import type { ProgramTexts } from "./empty-node.ts";

/** A mode that plans can be made and explained for, as one value: one file of this folder and one row in index.ts. */
export interface InspectedMode {
  readonly facts: ModeFacts;
  /** Has its backend write a plan of one family on a node that was never programmed. */
  dryRun(plan: ForwardingPlan, options: DryRunSettings, texts: ProgramTexts): Promise<unknown>;
  /** What becomes of node ports on a family's loopback addresses; absent: they are served as on other addresses. */
  readonly loopbackNodePorts?: (config: AgentConfig, family: IPFamily) => LoopbackNodePorts;
  /** Whether established connections may bypass rules; absent: not in this mode. */
  readonly fastPath?: (config: AgentConfig) => boolean;
  /** The tables of nftables that a plan stands for, in steps; absent: the mode works without. */
  readonly tables?: (plan: ForwardingPlan, options: DryRunSettings) => Generator<void, readonly NftTable[], void>;
}

export interface DryRunSettings {
  readonly config: AgentConfig;
  /**
   * Rules count packets with the nfacct objects that kube-proxy has: the kernel must have them. Only for iptables mode.
   */
  readonly counters?: boolean;
  /** The node lets packets in state INVALID through. Default: as the configuration says. Only for iptables mode. */
  readonly tcpBeLiberal?: boolean;
}
