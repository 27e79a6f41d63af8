/** A cluster as specs see it: its nodes, pods, agents and API server. */

import type { IPFamily } from "@fairlead/core";
import type { Argv, RunOptions, RunResult } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import type { ApiClient } from "../control-plane/api-client.ts";
import type { Probe, ProbeResult } from "../peer/protocol.ts";
import type { SecondaryNetwork } from "../secondary.ts";
import type { Script } from "../support/script.ts";

/** What a cluster is before it runs; specs say by it whether they can run there. */
export interface ClusterShape {
  readonly provider: string;
  readonly mode: string;
  readonly families: readonly IPFamily[];
  readonly nodeNames: readonly string[];
  readonly networks: readonly NetworkShape[];
  /** The nodes have a kernel that is not the machine's: its clock may be set. */
  readonly ownKernel?: boolean;
  /** What it can do beyond what every cluster can; default none. */
  readonly abilities?: readonly Ability[];
}

/**
 * dns: `Pod.serveDns`, `Pod.lookUp`. expire-watches: `ApiServerControl.expireWatches`. step-clock:
 * `AgentStart.ownClock`, `AgentOnNode.stepClock`. fill-disk: `AgentStart.stateDiskFull`. attack: agents are processes
 * of this machine that can be started with flags of their own, and scripts run alongside them: `AgentOnNode.pid`,
 * `AgentStart.flags`, `.openFiles`, `ClusterNode.startScript`, `ApiServerControl.turnSilent`. learn:
 * `AgentStart.learns`, `.flags`, `.multiCNI`. browser: `ApiServerControl.namespace`, where one can run. console: the
 * same, and `ClusterNode.namespaceFile`. instance: `ClusterNode.startInstance`. local-instance:
 * `ClusterNode.startLocalInstance`. pod-script: `Pod.startScript`. kubelet: Pods that name a node run there,
 * `Cluster.runPodsOf`. secondary-network: `Pod.join`.
 */
export type Ability =
  | "dns"
  | "expire-watches"
  | "step-clock"
  | "fill-disk"
  | "attack"
  | "browser"
  | "learn"
  | "console"
  | "instance"
  | "kubelet"
  | "local-instance"
  | "pod-script"
  | "secondary-network";

/** A pod network of the cluster. */
export interface NetworkShape {
  readonly name: string;
  readonly podCIDRs: Readonly<Partial<Record<IPFamily, string>>>;
  /** Fairlead is asked to ignore its pods' services (`--exclude-cluster-cidr`). */
  readonly excluded: boolean;
  /** It serves its pods' services itself. */
  readonly ownLoadBalancer: boolean;
  /** Services that Fairlead proxies show endpoints the node in place of the pod that calls. */
  readonly hidesCallers?: boolean;
  readonly mtu: number;
}

/** A running cluster with Fairlead on every node: what specs work with. */
export interface Cluster extends ClusterShape {
  readonly nodes: readonly ClusterNode[];
  readonly api: ApiClient;
  /** Beyond the nodes; routes ClusterIPs to the first node, and `gateAddress` to the node that it was made for. */
  readonly outside: Client & {
    /** Runs a program there; absent where that is not a namespace of this machine. */
    run?(argv: Argv, options?: RunOptions): Promise<RunResult>;
    /** For programs of this machine that are to stay there. */
    readonly namespace?: Pick<NetworkNamespace, "argvPrefix" | "env">;
  };
  /** Further addresses of `outside`, to send from (`Probe.source`): a client that source ranges do not let in. */
  readonly strangerAddresses: Readonly<Partial<Record<IPFamily, string>>>;
  readonly apiServer: ApiServerControl;
  /** Clusters with kubelets and DaemonSets only. */
  readonly kubernetes?: WholeKubernetes;
  /** Starts a pod: its namespace, its servers, its object with the status a kubelet would set. */
  startPod(wanted: WantedPod): Promise<Pod>;
  /**
   * Has the nodes run the Pods of a Kubernetes namespace, of the first network, until it is disposed of. Absent where
   * kubelets run all.
   *
   * @param dns the address of the server that pods ask for names; default: the machine's
   */
  runPodsOf?(namespace: string, dns?: string): Promise<{ dispose(): Promise<void> }>;
  /**
   * An address of no host that the outside routes to this node, for externalIPs and load balancers. A new one each
   * time.
   */
  gateAddress(node: ClusterNode, family: IPFamily): string;
  /** How to look around in it, a line each. */
  readonly tour: readonly string[];
  /** For the artifacts of a failed run: file name → rules, tables, states and logs of every node. */
  state(): Promise<Readonly<Record<string, string>>>;
  dispose(): Promise<void>;
}

export interface WholeKubernetes {
  /** Full, `v1.36.3`. */
  readonly version: string;
  /** A file for programs that `ApiServerControl.run` runs; the administrator's. */
  readonly kubeconfig: string;
  kubectl(args: readonly string[], options?: RunOptions): Promise<RunResult>;
  /** The program that `kubectl` runs, for others that call it. */
  readonly kubectlProgram: string;
  /** Puts Fairlead's own DaemonSet on the cluster, and waits until it serves on every node. */
  addFairlead(): Promise<void>;
  /** Puts the agents of deploy/overlays/instance on the cluster, whose name is `edge`, and waits until they serve. */
  addInstance(): Promise<void>;
  /** Puts kube-proxy on the nodes as kubeadm does, alongside whatever serves there. */
  addKubeProxy(): Promise<void>;
  /** Puts MetalLB on the cluster, once: it gives addresses of the nodes' own network, in layer-2 mode. */
  addLoadBalancer(): Promise<void>;
  /** Puts the Gateway API and `fairlead-controller --jobs=gateways` on the cluster, once. */
  addGateways(): Promise<void>;
  /** Gives nodes, by name, other proxies; all others have Fairlead's own DaemonSet. kube-proxy comes as its image. */
  giveProxies(proxies: ReadonlyMap<string, NodeProxy>): Promise<void>;
}

export interface WantedPod {
  readonly namespace: string;
  /** A name of `ClusterShape.networks`. */
  readonly network: string;
  readonly node: ClusterNode;
  readonly labels?: Readonly<Record<string, string>>;
  /** Default true. */
  readonly ready?: boolean;
}

/** A pod serves on the ports in `podPorts`, and can send. */
export interface Pod extends Client {
  readonly network: string;
  readonly node: ClusterNode;
  readonly namespace: string;
  setReady(ready: boolean): Promise<void>;
  /** Deletes its object with a grace period: it goes on serving and is terminating until `remove`. */
  terminate(): Promise<void>;
  /** Starts a DNS server at `DNS_PORT` that knows these names, in place of an earlier one; it ends with the pod. */
  serveDns?(records: readonly DnsRecord[]): Promise<void>;
  /** Asks a DNS server at port 53 as resolver libraries do: over UDP, and over TCP when the answer is cut. */
  lookUp?(server: string, question: DnsQuestion): Promise<readonly string[]>;
  /**
   * Gives it a second interface, and its object the annotation that Multus would write.
   *
   * @returns its addresses there
   */
  join?(network: SecondaryNetwork): Promise<readonly string[]>;
  /** Runs a script in its network namespace; it ends with the pod. */
  startScript?(file: string, args?: readonly string[]): Promise<Script>;
  /** Deletes object, servers and namespace. May be called twice. */
  remove(): Promise<void>;
}

export interface DnsQuestion {
  readonly name: string;
  readonly type: "A" | "AAAA" | "TXT";
}

export interface DnsRecord extends DnsQuestion {
  /** An address; for TXT a text of any length. */
  readonly value: string;
}

export const DNS_PORT = 5353;

/** Where every pod listens. */
export const POD_PORTS = { tcp: [80, 8080], udp: [53, 80] } as const;

/** Where the nodes themselves listen. */
export const NODE_PORTS = { tcp: [8081], udp: [] } as const;

/** Sends requests; see `Probe`. */
export interface Client {
  readonly name: string;
  readonly addresses: Readonly<Partial<Record<IPFamily, string>>>;
  send(probe: Probe): Promise<readonly ProbeResult[]>;
}

export interface ClusterNode extends Client {
  readonly zone: string;
  /** `NetworkNamespace.file`, for programs alongside the API server that enter it. */
  readonly namespaceFile?: string;
  readonly agent: AgentOnNode;
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

export interface AgentOnNode {
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
  readonly stateDiskFull?: boolean;
  /** Its wall clock can be stepped (`AgentOnNode.stepClock`). */
  readonly ownClock?: boolean;
  /** No flag of its own says a CIDR of a pod network: it has to learn them. */
  readonly learns?: boolean;
  /** With `learns`: the section of this name in its configuration file. */
  readonly multiCNI?: object;
  /** It remembers under this name, apart from all that was remembered otherwise: what starts first knows nothing. */
  readonly memory?: string;
  /** After its own flags; the last of a name counts. */
  readonly flags?: readonly string[];
  /** The most files and sockets that it may have open. */
  readonly openFiles?: number;
}

export interface NodeProxy {
  readonly mode: string;
  /** Path of kube-proxy's program; absent: Fairlead. */
  readonly kubeProxy?: string;
}

/** The API server of a cluster, as specs use it and stand in its way. */
export interface ApiServerControl {
  /** For `run`, and for the nodes. */
  readonly url: string;
  /** May do everything. */
  readonly token: string;
  /** PEM; what its certificate is signed by. */
  readonly ca: string;
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
  /** A node gets no more bytes after the script reads "silence", nor, on connections of that time, after "answer". */
  turnSilent?(node: ClusterNode): Promise<Script>;
  /** Where the API server is, for programs of this machine that are to reach it and stay. */
  readonly namespace?: Pick<NetworkNamespace, "argvPrefix" | "env">;
}
