import type { Ownership } from "@fairlead/core";

/** How many services each owner has on a node, by family and service. */
export type OwnerCounts = Readonly<Record<Ownership, number>>;

/** What an agent says of itself. What is absent it does not tell; kube-proxy tells most of it too. JSON values only. */
export interface AgentStatus {
  readonly program?: "fairlead" | "kube-proxy";
  /** With a v. */
  readonly version?: string;
  /** Of an agent alongside the node's first proxy. */
  readonly serviceProxyName?: string;
  /** The mode that really runs. */
  readonly mode?: string;
  /** Whether the proxy works, as /livez of its health port has it. */
  readonly healthy?: boolean;
  /** When the rules of the family that is behind were last synced, as ISO 8601. */
  readonly lastSync?: string;
  /** Absent where only Fairlead knows (kube-proxy). */
  readonly owners?: OwnerCounts;
}

/** One node of a cluster. A node that does not answer is a row as well. */
export interface NodeStatus extends AgentStatus {
  readonly node: string;
  /** Whether the agent answered. */
  readonly answers: boolean;
  /** Why not, or what could not be read. */
  readonly problem?: string;
  /** How many services differ from what should be programmed; absent: that was not looked at. */
  readonly differences?: number;
  /** When this was read, as ISO 8601. */
  readonly readAt: string;
}
