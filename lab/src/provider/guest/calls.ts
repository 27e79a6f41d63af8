import type { IPFamily } from "@fairlead/core";
import type { Argv, RunResult } from "@fairlead/kernel";
import type { Probe, ProbeResult } from "../../peer/protocol.ts";
import type { ClusterShape, WantedPod } from "../cluster.ts";
import type { AgentStart, NodeProxy } from "../node.ts";
import type { ClusterRequest } from "../provider.ts";

type Addresses = Readonly<Partial<Record<IPFamily, string>>>;

/** Written by the machine's side for the guest's: what it opens, and how it reaches the control plane. */
export interface GuestSettings {
  readonly request: ClusterRequest;
  readonly shape: ClusterShape;
  /** The API server's address, and its certificate as PEM. */
  readonly apiServer: {
    readonly host: string;
    readonly port: number;
    readonly ca: string;
    readonly url: string;
    readonly token: string;
  };
  /** File that the agents are given. */
  readonly proxyKubeconfig: string;
  /** File for what stands in for controllers. */
  readonly adminKubeconfig: string;
  /** Where the machine's side waits for the guest to connect. */
  readonly host: string;
  readonly port: number;
}

/** The part of a cluster that only the guest knows. */
export interface OpenedCluster {
  readonly nodes: readonly { readonly name: string; readonly zone: string; readonly addresses: Addresses }[];
  readonly outside: Addresses;
}

type AgentAction = "kill" | "SIGSTOP" | "SIGCONT";

/**
 * What the machine's side asks of the cluster in the guest: `Cluster` with names in place of objects, and without what
 * the machine's side does itself. Arguments and answers are JSON.
 */
export interface GuestCalls {
  open(): Promise<OpenedCluster>;
  /** @param client name of a node or a pod, or `outside` */
  send(client: string, probe: Probe): Promise<readonly ProbeResult[]>;
  run(node: string, argv: Argv): Promise<RunResult>;
  agent(node: string, action: AgentAction): Promise<void>;
  restartAgent(node: string, how: AgentStart): Promise<void>;
  swapAgent(node: string, proxy: NodeProxy): Promise<void>;
  startLocalInstance(node: string, serviceProxyName: string): Promise<void>;
  /** One that was started. */
  removeLocalInstance(node: string, serviceProxyName: string): Promise<void>;
  agentGet(node: string, path: string): Promise<string>;
  agentStatus(node: string, family: IPFamily, port: number): Promise<number>;
  agentLog(node: string): Promise<string>;
  startPod(wanted: WantedPodAt): Promise<{ readonly name: string; readonly addresses: Addresses }>;
  pod(name: string, action: "terminate" | "remove"): Promise<void>;
  /** @returns what it said when it was ready, and a name for the other calls */
  startPodScript(pod: string, file: string, args: readonly string[]): Promise<StartedScript>;
  askScript(script: string, line: string): Promise<string>;
  stopScript(script: string): Promise<void>;
  setPodReady(name: string, ready: boolean): Promise<void>;
  setPodLabels(name: string, labels: Readonly<Record<string, string | null>>): Promise<void>;
  state(): Promise<Readonly<Record<string, string>>>;
  dispose(): Promise<void>;
}

interface StartedScript {
  readonly name: string;
  readonly ready: string;
}

/** `WantedPod` with the node's name. */
type WantedPodAt = Omit<WantedPod, "node"> & { readonly node: string };
