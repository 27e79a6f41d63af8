import type { AgentConfig, LoopbackNodePorts } from "@fairlead/config";
import type { ForwardingPlan, IPFamily, ModeFacts, NodeState } from "@fairlead/core";
import type { NftTable } from "@fairlead/netfilter/nft";
import type { ProgramTexts } from "./empty-node.ts";

/** A mode that plans can be made and explained for, as one value: one file of this folder and one row in index.ts. */
export interface InspectedMode {
  readonly facts: ModeFacts;
  /** Why what it programs cannot be read, nor packets be followed through it; absent: they can. */
  readonly unread?: string;
  /** Why what it writes with a configuration cannot be said; absent: it always can. */
  readonly unwritten?: (settings: DryRunSettings) => string | undefined;
  /** What becomes of packets that the plan refuses or drops, in words; absent: that. */
  readonly unserved?: string;
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
  /** The nodes of the cluster: where the pods of an overlay are. Only for kernelspace mode. */
  readonly nodes?: {
    /** The address of the node that is planned for. */
    readonly own: string | undefined;
    readonly others: readonly Pick<NodeState, "addresses" | "podCIDRs">[];
  };
  /** The node lets packets in state INVALID through. Default: as the configuration says. Only for iptables mode. */
  readonly tcpBeLiberal?: boolean;
}
