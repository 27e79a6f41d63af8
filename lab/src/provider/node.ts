import type { IPFamily } from "@fairlead/core";
import type { Argv, RunResult } from "@fairlead/kernel";
import type { Probe, ProbeResult } from "../peer/protocol.ts";
import type { Script } from "../support/script.ts";
import type { SecondUplink } from "../uplink/second-uplink.ts";

/** Somebody who sends requests; see `Probe`. */
export interface Client {
  readonly name: string;
  readonly addresses: Readonly<Partial<Record<IPFamily, string>>>;
  send(probe: Probe): Promise<readonly ProbeResult[]>;
}

export interface ClusterNode extends Client {
  readonly zone: string;
  /** A process in its network namespace, for programs alongside the API server that enter it. */
  readonly namespacePid?: number;
  readonly agent: AgentOnNode;
  /** Runs a program on the node, in its network namespace. */
  run(argv: Argv): Promise<RunResult>;
  /**
   * Starts an agent with a service proxy name alongside the node's first proxy; resolves once its rules are written. It
   * ends with the cluster, and its rules do.
   *
   * @param flags after its own; the last of a name counts
   */
  startInstance?(serviceProxyName: string, ...flags: readonly string[]): Promise<Instance>;
  /** The same on local ports only (`--userspace-only`), at the node's own address: it has no rules. */
  startLocalInstance?(serviceProxyName: string): Promise<Removable>;
  /** Gives it a second uplink, with a client behind it. */
  openSecondUplink?(): Promise<SecondUplink>;
  /** Runs a script in its network namespace. */
  startScript?(file: string, args?: readonly string[]): Promise<Script>;
}

export interface Removable {
  /** Ends it when it runs, and runs its `--cleanup`. */
  remove(): Promise<void>;
}

/** An agent alongside the node's first proxy. */
export interface Instance extends Removable {
  /** As a rollout would; resolves once its rules are written. */
  restart(): Promise<void>;
  /** kill -9: its rules stay. */
  kill(): Promise<void>;
}

/** Fairlead on one node. */
export interface AgentOnNode extends Partial<Removable> {
  /** The process that runs, or ran last, as this machine numbers it. */
  pid?(): number;
  /** Its address for GET; the text of the answer. `path` such as `/metrics`, `/ownership`. */
  get(path: string): Promise<string>;
  /** The HTTP status at a port of the node's own address, 0 when nothing answers. */
  status(family: IPFamily, port: number): Promise<number>;
  log(): Promise<string>;
  /** kill -9 */
  kill(): Promise<void>;
  /** Stops it as a rollout would (SIGTERM) when it runs, starts it, and resolves once it is healthy. */
  restart(how?: AgentStart): Promise<void>;
  /**
   * Ends what runs and starts another proxy in its place, or Fairlead in another mode, as a rollout would; resolves
   * once its rules are written. Absent where agents are not processes of the test ground.
   */
  swap?(proxy: NodeProxy): Promise<void>;
  /** SIGSTOP, SIGCONT */
  signal(signal: "SIGSTOP" | "SIGCONT"): Promise<void>;
  /** Sets the wall clock of an agent that has one of its own so much later than the machine's; negative: earlier. */
  stepClock?(offsetMs: number): Promise<void>;
}

/** Hard times for an agent, until it is started again; clusters without the ability pay no heed. */
export interface AgentStart {
  /** The disk for its state has no byte left. */
  readonly stateDiskFull?: boolean;
  /** Its wall clock can be stepped (`AgentOnNode.stepClock`). */
  readonly ownClock?: boolean;
  /** No flag of its own says a CIDR of a pod network: it has to learn them. */
  readonly learns?: boolean;
  /** It remembers under this name, apart from all that was remembered otherwise: what starts first knows nothing. */
  readonly memory?: string;
  /** The bundle of another build. */
  readonly bundle?: string;
  /** After its own flags; the last of a name counts. */
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The most files and sockets that it may have open. */
  readonly openFiles?: number;
}

/** What proxies services on a node. */
export interface NodeProxy {
  readonly mode: string;
  /** Path of kube-proxy's program; absent: Fairlead. */
  readonly kubeProxy?: string;
}
