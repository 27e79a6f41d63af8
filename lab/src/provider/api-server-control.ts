import type { Argv, RunOptions, RunResult } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import type { Script } from "../support/script.ts";
import type { ClusterNode } from "./node.ts";

/** The API server of a cluster, as specs use it and stand in its way. */
export interface ApiServerControl {
  /** For `run`, and for the nodes. */
  readonly url: string;
  /** May do everything. */
  readonly token: string;
  /** Runs a program where the control plane is. */
  run(argv: Argv, options?: RunOptions): Promise<RunResult>;
  stop(): Promise<void>;
  /** Starts it again and waits until it is ready. */
  start(): Promise<void>;
  /**
   * Every watch ends at once with 410 Gone, for so long; lists are answered as ever.
   *
   * @returns how many watches were answered so
   */
  expireWatches?(ms: number): Promise<number>;
  /**
   * Until the script is stopped, a node's lists are answered in that way; it says `HostileSeen` as JSON when it is
   * asked.
   */
  turnHostile?(way: HostileWay, node: ClusterNode): Promise<Script>;
  /**
   * Until the script is stopped, what any node asks below that path is answered with 429; it says how many requests
   * were when it is asked.
   */
  turnBusy?(path: string): Promise<Script>;
  /** Where the API server is, for programs of this machine that are to reach it and stay. */
  readonly namespace?: Pick<NetworkNamespace, "argvPrefix" | "env">;
  /** Runs a script alongside the API server. */
  startScript?(file: string, args?: readonly string[]): Promise<Script>;
}

/**
 * silent: nobody hears a byte after the script was told "silence", nor, of what was open then, after "answer". The
 * others refuse watches of services and answer lists of them in their way; two send 700 MB that are no list yet.
 */
export type HostileWay = "silent" | "one string" | "nesting" | "endless continue";

/** What a hostile API server has answered in its own way. */
export interface HostileSeen {
  readonly requests: number;
  readonly bytes: number;
}
