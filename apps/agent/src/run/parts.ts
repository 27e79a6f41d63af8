import type { Clock } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { ClusterState, IPFamily, ModeFacts, Planner } from "@fairlead/core";
import type { FilterOptions, Memory, MemoryScope, OwnershipDelay } from "@fairlead/endpoint-filter";
import type { LiveNetworks, NetworksSetup, NodeEvents, NodeInputs } from "@fairlead/intake";
import type { ObjectSource, RequestObserver, SourceReport } from "@fairlead/watch";
import type { ConnectionLimit } from "../http/listen.ts";
import type { Kernel, LocalKernel } from "../kernel.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { ModeRemoval, ModeRuntime } from "../modes/mode.ts";
import type { KnownKeeper } from "../networks.ts";
import type { MemoryKeeper } from "../ownership.ts";
import type { ProblemLog } from "../problems.ts";
import type { ProxyHealth } from "../proxy-health.ts";
import type { ReplyRouting } from "../reply-routing.ts";
import type { ServiceHealthServers } from "../service-health.ts";
import type { Progress, SyncFollower } from "../sync/follower.ts";
import type { SyncLoop } from "../sync/sync-loop.ts";
import type { Syncer } from "../sync/syncer.ts";
import type { WatchedFile } from "../watched-files.ts";

/** Everything that an agent is put together from; nothing of it runs yet. */
export interface AgentParts extends ModeRuntime {
  readonly config: AgentConfig;
  /** What is configured of it; the networks that are learned give other CIDRs. */
  readonly filter: FilterOptions & MemoryScope;
  /** Absent: no network is learned. */
  readonly networks?: NetworksSetup | undefined;
  readonly nodeName: string;
  /**
   * What backends program and what is read of the node; only the latter where nothing is programmed (--userspace-only).
   */
  readonly kernel: Kernel | LocalKernel;
  readonly mode: ModeFacts;
  /** Why it is not the one that was asked for. */
  readonly fallback?: string | undefined;
  /** The modes that may have left something, in the order in which it is removed. */
  readonly removals: readonly ModeRemoval[];
  /** The families that this node cannot do, and why. */
  readonly unserved: ReadonlyMap<IPFamily, string>;
  /** Keeps answers on the interface that their client came in by; absent: they leave as routed. */
  readonly replies?: ReplyRouting | undefined;
  /** What else follows from syncs. */
  readonly followers?: readonly SyncFollower[];
  /** Connections that all HTTP ports together may have open. Default 1,024. */
  readonly maxClients?: number;
  /** What the agent before this one remembered. */
  readonly memory: Memory;
  readonly source: (onReport: (report: SourceReport) => void, onRequest: RequestObserver) => ObjectSource;
  /** What the source is reached by: another one needs another agent. */
  readonly kubeconfig?: WatchedFile | undefined;
  /** Where the backends report that a sync makes progress. */
  readonly progress?: Progress;
  /** Events about the own Node and Services; absent without an API server. */
  readonly events?: Pick<NodeEvents, "report"> | undefined;
  /** Has `ask` called whenever an operator wants a full sync; absent: not possible. */
  readonly onFullSyncAsked?: (ask: () => void) => void;
  readonly clock: Clock;
  readonly log: Log;
  readonly random?: () => number;
}

/**
 * What an agent is made of; `createAgent` puts it together.
 */
export interface Agent {
  readonly families: readonly IPFamily[];
  /** The objects of the cluster, and which services changed since the last sync. */
  readonly state: ClusterState;
  /** What else the planner needs: the node, its addresses, service CIDRs, the networks' decision. */
  readonly inputs: NodeInputs;
  /** Absent: no network is learned. */
  readonly networks: LiveNetworks | undefined;
  /** Keeps a service for a moment whose last endpoint here went. */
  readonly delay: OwnershipDelay;
  /** Decides what becomes of packets. */
  readonly planner: Planner;
  /** One sync: plans, and has each family's backend write the kernel. */
  readonly syncer: Syncer;
  /** When syncs and checks run. */
  readonly loop: SyncLoop;
  readonly problems: ProblemLog;
  readonly metrics: Metrics;
  readonly health: ProxyHealth;
  readonly serviceHealth: ReadonlyMap<IPFamily, ServiceHealthServers>;
  readonly connectionLimit: ConnectionLimit;
  /** What outlives the agent: which network owned each service, and the networks last learned. */
  readonly keeper: MemoryKeeper;
  readonly known: KnownKeeper;
}
