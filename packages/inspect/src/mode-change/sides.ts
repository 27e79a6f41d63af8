import type { AgentConfig } from "@fairlead/config";
import type { ModeFacts } from "@fairlead/core";
import { factsOf } from "../modes/index.ts";
import type { PlannedNode } from "../node-plan.ts";

/** What a node serves in one mode. */
export interface ModeSide {
  readonly planned: PlannedNode;
  readonly config: AgentConfig;
}

/** What is known of the node beyond its objects; what is absent is not known. */
export interface SeenNode {
  /** `6.1.0-44-amd64` */
  readonly kernel?: string;
  /** All addresses of its interfaces. */
  readonly addresses?: readonly string[];
  /** Packets to node ports on loopback addresses that the rules have accepted (a counter of iptables mode). */
  readonly localhostPackets?: number;
  /** Packets that the rules have dropped as invalid (a counter of iptables mode). */
  readonly invalidPackets?: number;
}

/** A node and its two modes: `before` serves now. */
export interface ModeChange {
  readonly before: ModeSide;
  readonly after: ModeSide;
  readonly seen: SeenNode;
}

export function factsOfSide({ planned }: ModeSide): ModeFacts {
  return factsOf(planned.mode);
}

/** Whether the mode programs tables of nftables of its own. */
export function hasTables(side: ModeSide): boolean {
  return factsOfSide(side).nftTables !== undefined;
}

/** Whether the kernel's virtual servers serve, which have schedulers, and addresses of the node for all services. */
export function hasVirtualServers(side: ModeSide): boolean {
  return factsOfSide(side).objects.own?.kinds.includes("virtualServers") === true;
}
