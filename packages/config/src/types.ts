/**
 * What the agent runs with. Everything is decided here once: defaults are in, durations are milliseconds, lists are
 * split.
 */
import type { IPFamily } from "@fairlead/base";
import type { CIDR_SOURCES } from "./cidr-source-names.ts";

/**
 * Modes of kube-proxy on Linux, its old userspace mode, and its mode on Windows. That a mode has no backend (yet) is
 * for the agent to say.
 */
export type ProxyMode = "iptables" | "ipvs" | "nftables" | "userspace" | "kernelspace";

/** What the agent runs on; any: what is read is a proxy's elsewhere, such as that of a node of the cluster. */
export type Platform = "linux" | "windows" | "any";

/** An address and a port that a server listens on. */
export interface SocketAddress {
  /** Canonical IP address without brackets. */
  readonly address: string;
  /** 1…65535 */
  readonly port: number;
}

/** KubeProxyConfiguration.clientConnection, and what the flags add to it. */
export interface ClientConnection {
  /** Path of a kubeconfig file. Absent, and no `master`: the in-cluster service account. */
  readonly kubeconfig?: string;
  /** URL of the API server, in place of the kubeconfig's. */
  readonly master?: string;
  /** Credentials of the kubeconfig may come from programs that it names (`exec`). */
  readonly allowExecCredentials: boolean;
  /** Requests a second; negative: no limit (client-go). */
  readonly qps: number;
  /** Requests above `qps` for a moment. */
  readonly burst: number;
  /** The media type of request bodies. */
  readonly contentType: string;
  /** Media types that answers may have, "" for the default. */
  readonly acceptContentTypes: string;
}

/**
 * How traffic of this node's pods is recognized. `node-cidr` asks for the own Node's podCIDRs; `none`: clusterCIDR is
 * empty, nothing is masqueraded for coming from elsewhere.
 */
export type DetectLocal =
  | { readonly kind: "none" }
  | { readonly kind: "cidrs"; readonly cidrs: readonly string[] }
  | { readonly kind: "node-cidr" }
  | { readonly kind: "bridge"; readonly interface: string }
  | { readonly kind: "interface-prefix"; readonly prefix: string };

/** 0 leaves the kernel's value as it is, everywhere in here. */
export interface ConntrackSettings {
  /** Entries of the connection tracking table for each core. */
  readonly maxPerCore: number;
  /** The least number of entries, whatever `maxPerCore` comes to. */
  readonly min: number;
  /** Milliseconds of an established TCP connection without packets. */
  readonly tcpEstablishedTimeoutMs: number;
  /** Milliseconds of a TCP connection in CLOSE_WAIT. */
  readonly tcpCloseWaitTimeoutMs: number;
  /** Packets outside of the TCP window are not INVALID. */
  readonly tcpBeLiberal: boolean;
  /** Milliseconds of a UDP flow that was seen in one direction. */
  readonly udpTimeoutMs: number;
  /** Milliseconds of a UDP flow that was seen in both. */
  readonly udpStreamTimeoutMs: number;
}

/** How the agent logs. */
export interface LoggingSettings {
  /** Lines for people, or one JSON object a line. */
  readonly format: "text" | "json";
  /** klog's level: 0 is quiet, 5 logs everything. */
  readonly verbosity: number;
  /** Milliseconds between flushes of the log, as the configuration has it. */
  readonly flushFrequencyMs: number;
  /** Verbosity of files by pattern, as klog has it. */
  readonly vmodule: readonly { readonly filePattern: string; readonly verbosity: number }[];
}

/** Metrics of the connections that Services have through this node (--service-metrics). */
export interface ServiceMetricsSettings {
  /** Of which namespaces: never empty. */
  readonly namespaces: readonly string[] | "all";
  /** 1…10,000: services beyond it are left out. */
  readonly maxSeries: number;
}

/** Answers leave by the interface that the client came in by. */
export interface ReplyViaSettings {
  /**
   * auto: every interface with a default route. A table is the operator's own, with what leads out by the interface;
   * absent: one of Fairlead's, with the routes that the table `main` has by it.
   */
  readonly uplinks: "auto" | readonly { readonly interface: string; readonly table?: number | undefined }[];
  /** Bits of the packet's and the connection's mark, 1…2³²−1. */
  readonly markMask: number;
  /** Of the routing rules, 1…32,765. */
  readonly rulePriority: number;
  /** Of Fairlead's routing tables. */
  readonly firstTable: number;
}

/** What the process was started for; the first that was asked for, in kube-proxy's order. */
export type Action =
  | { readonly kind: "run" }
  /** Write `text` to `path` and end (--write-config-to). */
  | { readonly kind: "write-config"; readonly path: string; readonly text: string }
  | { readonly kind: "cleanup" }
  | { readonly kind: "init-only" };

/** Everything that the agent runs with: file, flags and defaults together. */
export interface AgentConfig {
  /** What is to be done: serve, clean up, write the configuration. */
  readonly action: Action;
  /** The file of --config with the text it had when it was read, to notice changes of it. */
  readonly configFile?: { readonly path: string; readonly text: string };
  /** The mode whose settings are in use. */
  readonly mode: ProxyMode;
  /**
   * The services that it is for: those whose label service.kubernetes.io/service-proxy-name has this value. Empty:
   * those without the label.
   */
  readonly serviceProxyName: string;
  /** Endpoints are those of the EndpointSlices that fairlead-controller writes, on pods' secondary networks. */
  readonly serviceNetwork: boolean;
  /** Trimmed, lower case. Absent: the node is called as the host. */
  readonly hostnameOverride?: string;
  /** Canonical address, whose family is the primary one; unspecified (0.0.0.0, ::): the Node's own says so. */
  readonly bindAddress: string;
  /** Absent: no health server (`--healthz-bind-address=`). */
  readonly healthzBindAddress?: SocketAddress;
  /** Where metrics are served. */
  readonly metricsBindAddress: SocketAddress;
  /** The agent ends where it cannot listen; false: it retries. */
  readonly bindAddressHardFail: boolean;
  /** The metrics server has profiles below /debug/pprof. */
  readonly enableProfiling: boolean;
  /** `major.minor` or "". */
  readonly showHiddenMetricsForVersion: string;
  /** How the API server is reached. */
  readonly client: ClientConnection;
  /** File or folder of manifests in place of the API server. */
  readonly manifests?: string;
  /** Folder for what has to outlive a restart; empty: nothing does. */
  readonly stateDir: string;
  /** How packets of local pods are recognized. */
  readonly detectLocal: DetectLocal;
  /** Canonical, any number of each family, without duplicates; there in every detectLocalMode. */
  readonly clusterCIDRs: readonly string[];
  /** Canonical CIDRs and the words `primary`, `localhost`, `all`; never empty. */
  readonly nodePortAddresses: readonly string[];
  /** Settings by mode; `config[config.mode]` are those in use. */
  readonly iptables: IptablesSettings;
  /** Settings of ipvs mode. */
  readonly ipvs: IpvsSettings;
  /** Settings of nftables mode. */
  readonly nftables: NftablesSettings;
  /** Settings of userspace mode. */
  readonly userspace: UserspaceSettings;
  /** Settings of kernelspace mode. */
  readonly kernelspace: KernelspaceSettings;
  /** Absent: there are none. */
  readonly serviceMetrics?: ServiceMetricsSettings;
  /** Limits and timeouts of connection tracking. */
  readonly conntrack: ConntrackSettings;
  /** TCP connections of endpoints that are gone lose their conntrack entries, so that their clients are reset. */
  readonly resetStaleTCP: boolean;
  /** Absent: answers leave as the node routes them. */
  readonly replyVia?: ReplyViaSettings;
  /** −1000…1000 */
  readonly oomScoreAdj: number;
  /** configSyncPeriod in milliseconds, greater than 0. */
  readonly configSyncPeriodMs: number;
  /** Ports of the userspace mode; absent: any. */
  readonly portRange?: { readonly from: number; readonly to: number };
  /** As given. */
  readonly featureGates: Readonly<Record<string, boolean>>;
  /** What they come to. */
  readonly features: Features;
  /** How the agent logs. */
  readonly logging: LoggingSettings;
  /** Which services belong to another network, and what becomes of them. */
  readonly multiCNI: MultiCNISettings;
  /** Every flag, without its dashes, with its value on this command line or its default, as text. */
  readonly flags: Readonly<Record<string, string>>;
  /** Those of `flags` that are on this command line. */
  readonly commandLine: Readonly<Record<string, string>>;
  /**
   * Flag or file field by path (`clusterCIDR`, `multiCNI.excludeClusterCIDRs`, …) that set it; defaults are not in it.
   */
  readonly provenance: Readonly<Record<string, string>>;
  /** The whole configuration in the form of KubeProxyConfiguration v1alpha1, as kube-proxy serves it at /configz. */
  readonly kubeProxyConfiguration: Readonly<Record<string, unknown>>;
  /** The FairleadConfiguration as the file and the flags say it; fields that neither has are left out. */
  readonly fairleadConfiguration: Readonly<Record<string, unknown>>;
}

/** What feature gates give and take, each by the gate of Kubernetes that it has. On by default, unless it says so. */
export interface Features {
  /** AllowServiceExternalIPs: spec.externalIPs are served. */
  readonly externalIPs: boolean;
  /** PreferSameTrafficDistribution: hints for nodes count. */
  readonly nodeHints: boolean;
  /** WatchListClient: lists come by a watch, from servers that can do it. */
  readonly watchList: boolean;
  /** ComponentStatusz, ComponentFlagz: the metrics port serves /statusz, /flagz. */
  readonly statusz: boolean;
  /** ComponentFlagz, in the same way. */
  readonly flagz: boolean;
  /**
   * KubeProxyNFTablesLocalhostNodePorts (KEP-6032), off by default: in nftables mode node ports on loopback addresses
   * are relayed where `nodePortAddresses` names these, and refused otherwise.
   */
  readonly nftLocalhostNodePorts: boolean;
}

/** What the agent runs with, without what it was started for and where each value came from. */
export type ResolvedConfig = Omit<
  AgentConfig,
  "action" | "commandLine" | "flags" | "fairleadConfiguration" | "kubeProxyConfiguration" | "provenance"
>;

interface CommonSettings {
  /** 0…31 */
  readonly masqueradeBit: number;
  /** Every packet to a service is masqueraded. */
  readonly masqueradeAll: boolean;
  /** Milliseconds between full syncs. */
  readonly syncPeriodMs: number;
  /** 0: every change is written at once. */
  readonly minSyncPeriodMs: number;
}

/** Settings of iptables mode. */
export interface IptablesSettings extends CommonSettings {
  /** Node ports are served on 127.0.0.1 as well. */
  readonly localhostNodePorts: boolean;
}

/** Masquerading is that of KubeProxyConfiguration's `iptables` block. */
export interface IpvsSettings extends CommonSettings {
  /** A scheduler of the kernel, `rr` by default. */
  readonly scheduler: string;
  /** Canonical CIDRs whose virtual servers the clean-up keeps. */
  readonly excludeCIDRs: readonly string[];
  /**
   * arp_ignore and arp_announce are set, so that the node answers ARP for service addresses on their own interface
   * only.
   */
  readonly strictARP: boolean;
  /** 0: leave as it is; so for the other two. */
  readonly tcpTimeoutMs: number;
  /** Milliseconds of a connection after its FIN; 0: leave as it is. */
  readonly tcpFinTimeoutMs: number;
  /** Milliseconds of a UDP flow; 0: leave as it is. */
  readonly udpTimeoutMs: number;
  /** Without IPVS in the kernel iptables mode serves; false: the agent ends. */
  readonly fallback: boolean;
}

/** What becomes of node ports on a family's loopback addresses in nftables mode. */
export type LoopbackNodePorts =
  /** Nothing: packets go to whichever program listens there. */
  | "untouched"
  /** They are refused and counted, in every protocol. */
  | "refused"
  /** TCP is relayed by the agent's own process, other protocols are refused and counted. */
  | "relayed";

/** Settings of nftables mode. */
export interface NftablesSettings extends CommonSettings {
  /** By the gate KubeProxyNFTablesLocalhostNodePorts and nodePortAddresses. */
  readonly loopbackNodePorts: Readonly<Record<IPFamily, LoopbackNodePorts>>;
  /** Established connections of services bypass rules (nftables.fastPath). Absent: none does. */
  readonly fastPath?: FastPathSettings;
}

/** Which packets may bypass rules. */
export interface FastPathSettings {
  /**
   * The devices whose packets may bypass rules: names, in which `*` stands for any characters and `?` for one; auto:
   * those of this cluster's pods, and those by which other nodes are reached.
   */
  readonly devices: readonly string[] | "auto";
}

/** Whatever is not here is that of the `iptables` block. */
export interface UserspaceSettings extends IptablesSettings {
  /** Serve only on local ports and leave the kernel as it is (--userspace-only). */
  readonly only: boolean;
  /** Greater than 0. */
  readonly udpIdleTimeoutMs: number;
  /** 0: TCP connections may be idle for ever. */
  readonly tcpIdleTimeoutMs: number;
  /** Sockets that all relays may have open at once. */
  readonly maxSockets: number;
  /** Sockets that the relays of one service may have open at once. */
  readonly maxSocketsPerService: number;
}

/** KubeProxyConfiguration.winkernel; periods are those of the `iptables` block. */
export interface KernelspaceSettings extends CommonSettings {
  /** Name of the HCN network that the pods are on; "": KUBE_NETWORK of the environment has it. */
  readonly networkName: string;
  /** On an overlay, the address that packets to pods leave from; "": none is given. */
  readonly sourceVip: string;
  /** Endpoints answer the clients of ClusterIPs directly. */
  readonly enableDSR: boolean;
  /** The endpoint that stands for the node itself. */
  readonly rootHnsEndpointName: string;
  /** Probes of load-balancer addresses are led to the node. */
  readonly forwardHealthCheckVip: boolean;
  /** Overlay networks are served (the gate WinOverlay). */
  readonly overlay: boolean;
}

/** What every source may have in addition to its own settings. */
interface SourceSettings {
  /** CIDRs in which its objects are believed, as the operator wrote them: the filter itself checks them. */
  readonly within?: readonly string[] | undefined;
  /** The one object that is read, both or neither. */
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}

/** Where CIDRs are learned from: a name with its settings, or any resource of the API (`plural.version.group`). */
export type CIDRSource = SourceSettings &
  (
    | { readonly source: (typeof CIDR_SOURCES)[number]; readonly vpcs?: readonly string[] | undefined }
    | { readonly source: "custom"; readonly resource: string; readonly fields: readonly string[] }
  );

/** Says which network owns a Service: by an annotation of theirs, or a label of their namespace. */
export type ServiceRuleSetting = ({ readonly annotation: string } | { readonly namespaceLabel: string }) & {
  readonly in?: readonly string[];
  /** The value must be none of these. */
  readonly notIn?: readonly string[];
  /** Nor the name of kube-ovn's default VPC. */
  readonly notInDefaultVPC?: true;
  readonly ownership: "ours" | "foreign";
  /** What of a foreign Service is left to its network. Default: all of it. */
  readonly excludedFrontends?: MultiCNISettings["excludedFrontends"];
};

/** How changes of learned CIDRs take effect. */
export interface CIDRChanges {
  /** Milliseconds that changes are gathered for. */
  readonly debounceMs: number;
  /** Milliseconds that a CIDR stays in effect after the last object that defined it is gone. */
  readonly removalDelayMs: number;
  /** 0…100: an alarm is raised where learned networks and rules make more of the services foreign. */
  readonly maxForeignPercent: number;
}

/** What the endpoint filter is made from. The CIDRs are as the operator wrote them: the filter itself checks them. */
export interface MultiCNISettings {
  /** CIDRs whose services another network serves. */
  readonly excludeClusterCIDRs: readonly string[];
  /** No source is listed twice, on either side. */
  readonly excludeCIDRsFrom: readonly CIDRSource[];
  /** Sources of this cluster's own CIDRs; no source is listed twice. */
  readonly clusterCIDRsFrom: readonly CIDRSource[];
  /** How changes of learned CIDRs take effect. */
  readonly cidrChanges: CIDRChanges;
  /** What a service with endpoints in both networks gets: its own endpoints, nothing, or all of them. */
  readonly mixedServices: "own-endpoints" | "skip" | "all";
  /** Which frontends of another network's services are left to that network, where no rule says it. */
  readonly excludedFrontends: "all" | "cluster-ip" | "excluded-clients";
  /** Undefined: as `excludedFrontends` has it. */
  readonly masqueradeToExcluded?: boolean | undefined;
  /** The annotation `fairlead.dev/ownership` decides. */
  readonly ownershipAnnotation: boolean;
  /** Decide after that annotation and before the CIDRs; the first that a Service meets. */
  readonly serviceRules: readonly ServiceRuleSetting[];
  /** `namespace/name` of Services that are never left unanswered, in addition to the cluster's DNS. */
  readonly protectedServices: readonly string[];
  /** Where the ConfigMap `fairlead-networks` is; undefined: in the namespace of the pod. */
  readonly consentNamespace?: string | undefined;
}

/** One wrong value. */
export interface ConfigError {
  /** The flag (`--oom-score-adj`) or the file and its field (`/etc/config.conf: oomScoreAdj`). */
  readonly field: string;
  /** The value as it was given. */
  readonly value: string;
  /** What is wrong with it and what would be right. */
  readonly message: string;
}

/** What a command line comes to. */
export type ParseResult =
  | { readonly kind: "run"; readonly config: AgentConfig; readonly warnings: readonly string[] }
  /** For standard output, exit 0. */
  | { readonly kind: "help" | "version"; readonly text: string }
  /** For standard error, exit 2: a flag that does not exist or lacks its value, or an argument that is no flag. */
  | { readonly kind: "usage-error"; readonly message: string }
  /** For standard error, exit 1: every wrong value at once. */
  | { readonly kind: "invalid"; readonly errors: readonly ConfigError[]; readonly warnings: readonly string[] };

/** What parsing needs of the process that it runs in. */
export interface ParseEnvironment {
  /** Reads the file of --config. What it throws becomes an error that names the flag. */
  readonly readFile: (path: string) => string;
  /** Fairlead's own version, for --version. */
  readonly version: string;
  /**
   * Flags that override everything else, the file of --config included: what a user says of a proxy whose configuration
   * is known. Default: none.
   */
  readonly overrides?: readonly string[];
  /** Default linux. */
  readonly platform?: Platform;
  /** The folder for state where none is said. Default: Linux'. */
  readonly stateDir?: string;
}
