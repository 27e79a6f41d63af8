import type { AgentConfig } from "@fairlead/config";
import type { Backend, IPFamily, ModeSemantics } from "@fairlead/core";
import type { FilterOptions, Memory } from "@fairlead/endpoint-filter";
import type { ServiceDeviceChange } from "@fairlead/kernel";
import type { ObjectSource, RequestObserver, SourceReport } from "@fairlead/watch";
import type { Clock } from "../clock.ts";
import type { NodeEvents } from "../events/node-events.ts";
import type { Kernel } from "../host/kernel.ts";
import type { LocalKernel } from "../host/local.ts";
import type { Log } from "../log/log.ts";
import type { Relaying } from "../modes/userspace.ts";
import type { ChosenMode } from "../start/choose-mode.ts";
import type { SyncFollower } from "../sync/follower.ts";
import type { Progress } from "../sync/progress.ts";

/** Everything that an agent is put together from; nothing of it runs yet. */
export interface AgentParts {
  readonly config: AgentConfig;
  readonly filter: FilterOptions;
  readonly nodeName: string;
  /** What backends program and what is read of the node; that alone where nothing is programmed (--userspace-only). */
  readonly kernel: Kernel | LocalKernel;
  /** The mode that really runs, and why it is not the one that was asked for. */
  readonly mode: ChosenMode;
  readonly semantics: ModeSemantics;
  readonly backends: ReadonlyMap<IPFamily, Backend>;
  /** The families that this node cannot do, and why. */
  readonly unserved: ReadonlyMap<IPFamily, string>;
  /** Where this process itself carries the traffic. */
  readonly relaying?: Relaying | undefined;
  /** What else follows from syncs. */
  readonly followers?: readonly SyncFollower[];
  /** Whether the families' tools can work side by side; those of legacy iptables share one lock. */
  readonly familiesAtOnce: boolean;
  /** Connections that all HTTP ports together may have open. Default 1,024. */
  readonly maxClients?: number;
  /** What the agent before this one remembered. */
  readonly memory: Memory;
  readonly source: (onReport: (report: SourceReport) => void, onRequest: RequestObserver) => ObjectSource;
  /** Where the backends tell that a sync gets on. */
  readonly progress?: Progress;
  /** Events about the own Node and Services; absent without an API server. */
  readonly events?: Pick<NodeEvents, "tell"> | undefined;
  /** Has `ask` called whenever somebody wants a full sync; absent: nobody can. */
  readonly onFullSyncAsked?: (ask: () => void) => void;
  /** Whether somebody else has changed the service device; absent: the mode has none. */
  readonly strangeChange?: ((change: ServiceDeviceChange) => boolean) | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly random?: () => number;
}
