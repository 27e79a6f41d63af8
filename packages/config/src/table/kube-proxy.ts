/**
 * KubeProxyConfiguration, kubeproxy.config.k8s.io/v1alpha1: every field of k8s.io/kube-proxy/config/v1alpha1 and
 * kube-proxy's flags. All fields are optional; defaults come later, because some depend on others. What is checked here
 * holds in every mode.
 */
import * as z from "zod";
import { formatSocketAddress } from "../address.ts";
import { formatDuration } from "../duration.ts";
import type { ResolvedConfig } from "../types.ts";
import { block, field } from "./row.ts";
import {
  address,
  decimal,
  duration,
  durationOrNanoseconds,
  enumeration,
  flag,
  flagTypes,
  list,
  oneOf,
  quantity,
  socketAddress,
  text,
  wholeNumber,
} from "./scalars.ts";

export const API_VERSION = "kubeproxy.config.k8s.io/v1alpha1";
export const KIND = "KubeProxyConfiguration";

export const HEALTHZ_PORT = 10_256;
export const METRICS_PORT = 10_249;

const LINUX_MODES = ["iptables", "ipvs", "nftables", "userspace"] as const;
/** All modes; a node of the cluster may run on Windows. */
export const PROXY_MODES = [...LINUX_MODES, "kernelspace"] as const;

export const MODE_FORM = `must be ${enumeration(LINUX_MODES)}, or empty for iptables`;

const mode = text
  .transform((value, context) => {
    const known = PROXY_MODES.find((name) => name === value);
    if (known !== undefined) return known;
    context.addIssue({ code: "custom", message: MODE_FORM });
    return z.NEVER;
  })
  .meta({ enum: [...PROXY_MODES] });

const NO_BUFFERS = "no effect: lines are written at once";
const NO_BUFFERS_HELP = "No effect: each line is written at once.";
const WINDOWS = { note: "on [Windows](windows.md)" };

const outputRouting = (format: "text" | "json") => {
  const row = {
    withConfig: true,
    help: `${NO_BUFFERS_HELP} Needs the feature gate LoggingAlphaOptions.`,
    differs: NO_BUFFERS,
  } as const;
  return block("logging", {
    splitStream: field(flag, {
      ...row,
      flag: `log-${format}-split-stream`,
      external: (_config, given) => (given === true ? true : undefined),
    }),
    infoBufferSize: field(quantity, {
      ...row,
      flag: `log-${format}-info-buffer-size`,
      external: (_config, given) => given ?? "0",
    }),
  });
};

const vmodule = z.array(
  z.strictObject({
    filePattern: text.refine((pattern) => pattern !== "" && !/[=,]/.test(pattern), {
      error: "must be a file name or pattern without = and ,",
    }),
    verbosity: wholeNumber(0).default(0),
  }),
  { error: "must be a list of {filePattern, verbosity}" },
);

const BLOCKS = {
  iptables: "iptables",
  ipvs: "ipvs",
  nftables: "nftables",
  userspace: "iptables",
  kernelspace: "iptables",
} as const satisfies Readonly<Record<(typeof PROXY_MODES)[number], string>>;

type Block = (typeof BLOCKS)[keyof typeof BLOCKS];

function isInUse(block: Block, { mode: used }: ResolvedConfig): boolean {
  return BLOCKS[used] === block;
}

/** Periods are served in the block of the mode in use only. */
function period(block: Block, name: "syncPeriodMs" | "minSyncPeriodMs") {
  return (config: ResolvedConfig) => formatDuration(isInUse(block, config) ? config[config.mode][name] : 0);
}

const conntrackTimeout = (
  name: "tcpEstablishedTimeout" | "tcpCloseWaitTimeout" | "udpTimeout" | "udpStreamTimeout",
  row: { readonly flag: string; readonly help: string; readonly default?: string },
) => field(duration, { ...row, external: ({ conntrack }) => formatDuration(conntrack[`${name}Ms`]) });

const ipvsTimeout = (name: "tcpTimeout" | "tcpFinTimeout" | "udpTimeout", flagName: string, of: string) =>
  field(duration, {
    flag: flagName,
    help: `Timeout of ${of}. 0 keeps the kernel's setting.`,
    external: ({ ipvs }) => formatDuration(ipvs[`${name}Ms`]),
  });

const LOCAL_MODES = ["ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix"] as const;
const LOCAL_MODE_OF = {
  none: "ClusterCIDR",
  cidrs: "ClusterCIDR",
  "node-cidr": "NodeCIDR",
  bridge: "BridgeInterface",
  "interface-prefix": "InterfaceNamePrefix",
} as const satisfies Readonly<Record<ResolvedConfig["detectLocal"]["kind"], (typeof LOCAL_MODES)[number]>>;

export const kubeProxySchema = z.strictObject({
  apiVersion: z.literal(API_VERSION).optional(),
  kind: z.literal(KIND).optional(),
  featureGates: field(z.record(z.string(), flag, { error: "must be a map of names to true or false" }), {
    flag: "feature-gates",
    group: "api",
    type: flagTypes.mapStringBool,
    help: "Feature gates as Name=true|false. Gates that have no effect here are ignored, unknown gates with a warning.",
    differs: "unknown gates are a warning, not an error; see [feature gates](#feature-gates)",
    // kube-proxy leaves it out where it is empty.
    external: ({ featureGates }) => (Object.keys(featureGates).length === 0 ? undefined : featureGates),
  }),
  clientConnection: block("api", {
    kubeconfig: field(text, {
      flag: "kubeconfig",
      help: "Path of a kubeconfig file. Default, without --master: the service account of the pod.",
      differs: "`exec` of a user is refused without `--allow-exec-credentials`, `auth-provider` always",
      private: "the path of a file with credentials",
      external: ({ client }) => client.kubeconfig ?? "",
    }),
    acceptContentTypes: field(text, {
      differs: "as there where it names protobuf, with JSON as the second choice; else JSON",
      external: ({ client }) => client.acceptContentTypes,
    }),
    contentType: field(text, {
      flag: "kube-api-content-type",
      default: "application/vnd.kubernetes.protobuf",
      help: "Content type of lists and watches if the file sets no acceptContentTypes: protobuf if this names it, otherwise JSON.",
      differs: "of lists and watches, where acceptContentTypes is empty: protobuf, or else JSON; Events are JSON",
      external: ({ client }) => client.contentType,
    }),
    qps: field(decimal, {
      flag: "kube-api-qps",
      default: "5",
      help: "Requests per second to the API server. 0 means the default, a negative value no limit.",
      differs: "full pages of one list do not count",
      external: ({ client }) => client.qps,
    }),
    burst: field(wholeNumber(0), {
      flag: "kube-api-burst",
      default: "10",
      help: "Burst of requests to the API server. 0 means the default.",
      external: ({ client }) => client.burst,
    }),
  }),
  logging: block("logging", {
    format: field(oneOf(["text", "json"]), {
      flag: "logging-format",
      withConfig: true,
      default: "text",
      help: "Log format: text or json.",
      differs:
        "the same form with Fairlead's texts and keys; text has `fairlead` in place of the file and line, JSON also has `level`",
      external: ({ logging }) => logging.format,
    }),
    flushFrequency: field(durationOrNanoseconds, {
      flag: "log-flush-frequency",
      withConfig: true,
      default: "5s",
      help: NO_BUFFERS_HELP,
      differs: NO_BUFFERS,
      external: ({ logging }) => formatDuration(logging.flushFrequencyMs),
    }),
    verbosity: field(wholeNumber(0), {
      flag: "v",
      type: flagTypes.level,
      withConfig: true,
      help: "Log verbosity, from 0 (quiet) to 5 (everything).",
      differs: "2 adds a line for each sync, 4 single requests; beyond that there is nothing more",
      external: ({ logging }) => logging.verbosity,
    }),
    vmodule: field(vmodule, {
      flag: "vmodule",
      type: flagTypes.vmodule,
      withConfig: true,
      help: "Verbosity per source file. No effect: all files have the same verbosity. Only valid with the text format.",
      differs: NO_BUFFERS,
      external: ({ logging }) => (logging.vmodule.length === 0 ? undefined : logging.vmodule),
    }),
    options: block("logging", { text: outputRouting("text"), json: outputRouting("json") }),
  }),
  hostnameOverride: field(text, {
    flag: "hostname-override",
    group: "node",
    withConfig: true,
    help: "Name of this node's Node object. Default: the host name.",
    external: ({ hostnameOverride }) => hostnameOverride ?? "",
  }),
  bindAddress: field(address, {
    flag: "bind-address",
    group: "node",
    default: "0.0.0.0",
    help: "The node's primary IP. Overrides the IP of its Node object. Fairlead does not bind to it.",
    external: ({ bindAddress }) => bindAddress,
  }),
  healthzBindAddress: field(socketAddress(HEALTHZ_PORT), {
    flag: "healthz-bind-address",
    group: "served",
    default: "0.0.0.0:10256",
    help: "Address and port that serve /healthz and /livez.",
    external: ({ healthzBindAddress }) => (healthzBindAddress ? formatSocketAddress(healthzBindAddress) : ""),
  }),
  metricsBindAddress: field(socketAddress(METRICS_PORT), {
    flag: "metrics-bind-address",
    group: "served",
    default: "127.0.0.1:10249",
    help: "Address and port that serve /metrics and the other local pages.",
    external: ({ metricsBindAddress }) => formatSocketAddress(metricsBindAddress),
  }),
  bindAddressHardFail: field(flag, {
    flag: "bind-address-hard-fail",
    group: "served",
    help: "Exit if binding one of these addresses fails.",
    external: ({ bindAddressHardFail }) => bindAddressHardFail,
  }),
  enableProfiling: field(flag, {
    flag: "profiling",
    group: "served",
    help: "Serve /debug/pprof at the metrics address.",
    differs: "serves profiles of Node in place of Go's, see [the agent](../apps/agent/README.md)",
    external: ({ enableProfiling }) => enableProfiling,
  }),
  showHiddenMetricsForVersion: field(
    text.refine((version) => /^\d+\.\d+$/.test(version), { error: "must be <major>.<minor>, such as 1.36" }),
    {
      flag: "show-hidden-metrics-for-version",
      group: "served",
      type: flagTypes.string,
      help: "<major>.<minor>. No effect: no metrics are hidden.",
      notApplicable: "no metrics are hidden",
      external: ({ showHiddenMetricsForVersion }) => showHiddenMetricsForVersion,
    },
  ),
  mode: field(mode, {
    flag: "proxy-mode",
    group: "mode",
    type: flagTypes.mode,
    help: "Proxy mode: iptables (default), ipvs, nftables or userspace.",
    differs:
      "a mode that this build does not have is an error; never another mode in silence (`--ipvs-fallback` apart, which says so)",
    external: (config) => config.mode,
  }),
  iptables: block("mode", {
    masqueradeBit: field(wholeNumber(0, 31), {
      flag: "iptables-masquerade-bit",
      default: "14",
      help: "Bit of the packet mark that requests masquerading (iptables, ipvs), from 0 to 31.",
      external: ({ iptables }) => iptables.masqueradeBit,
    }),
    masqueradeAll: field(flag, {
      flag: "masquerade-all",
      help: "Masquerade all traffic to ClusterIPs, whatever its source.",
      external: (config) => !isInUse("nftables", config) && config.iptables.masqueradeAll,
    }),
    localhostNodePorts: field(flag, {
      flag: "iptables-localhost-nodeports",
      default: "true",
      help: "Accept IPv4 node ports on 127.0.0.1 (iptables).",
      external: ({ iptables }) => iptables.localhostNodePorts,
    }),
    syncPeriod: field(duration, {
      flag: "iptables-sync-period",
      default: "30s",
      help: "How often the rules are checked and repaired. Must be greater than 0.",
      differs:
        "in addition to the canary chain, checks the jumps and the chains of fixed names when their table has changed",
      external: period("iptables", "syncPeriodMs"),
    }),
    minSyncPeriod: field(duration, {
      flag: "iptables-min-sync-period",
      default: "1s",
      help: "Minimum interval between two syncs. 0 syncs every change immediately.",
      external: period("iptables", "minSyncPeriodMs"),
    }),
  }),
  ipvs: block("mode", {
    syncPeriod: field(duration, {
      flag: "ipvs-sync-period",
      default: "30s",
      help: "Same as --iptables-sync-period, for ipvs mode.",
      differs: "in addition to kube-proxy's timer, checks what must be there",
      external: period("ipvs", "syncPeriodMs"),
    }),
    minSyncPeriod: field(duration, {
      flag: "ipvs-min-sync-period",
      default: "1s",
      help: "Same as --iptables-min-sync-period, for ipvs mode.",
      external: period("ipvs", "minSyncPeriodMs"),
    }),
    scheduler: field(text, {
      flag: "ipvs-scheduler",
      default: "rr",
      help: "IPVS scheduler of virtual servers.",
      note: "the kernel's default `rr` where it is empty",
    }),
    excludeCIDRs: field(list("CIDRs"), {
      flag: "ipvs-exclude-cidrs",
      help: "CIDRs in which stale virtual servers are not removed.",
      external: ({ ipvs }) => (ipvs.excludeCIDRs.length === 0 ? null : ipvs.excludeCIDRs),
    }),
    strictARP: field(flag, {
      flag: "ipvs-strict-arp",
      help: "Strict ARP: set arp_ignore to 1 and arp_announce to 2.",
      external: ({ ipvs }) => ipvs.strictARP,
    }),
    tcpTimeout: ipvsTimeout("tcpTimeout", "ipvs-tcp-timeout", "idle IPVS TCP connections"),
    tcpFinTimeout: ipvsTimeout("tcpFinTimeout", "ipvs-tcpfin-timeout", "IPVS TCP connections after a FIN"),
    udpTimeout: ipvsTimeout("udpTimeout", "ipvs-udp-timeout", "IPVS UDP flows"),
  }),
  nftables: block("mode", {
    masqueradeBit: field(wholeNumber(), { external: ({ nftables }) => nftables.masqueradeBit }),
    masqueradeAll: field(flag, {
      flag: "masquerade-all",
      external: (config) => isInUse("nftables", config) && config.nftables.masqueradeAll,
    }),
    syncPeriod: field(duration, { flag: "iptables-sync-period", external: period("nftables", "syncPeriodMs") }),
    minSyncPeriod: field(duration, {
      flag: "iptables-min-sync-period",
      external: period("nftables", "minSyncPeriodMs"),
    }),
  }),
  winkernel: block("windows", {
    networkName: field(text, {
      ...WINDOWS,
      flag: "network-name",
      help: "Name of the HCN network of the pods. Default: the environment variable KUBE_NETWORK.",
    }),
    sourceVip: field(text, {
      ...WINDOWS,
      flag: "source-vip",
      help: "On an overlay network, the address that packets to pods leave from.",
    }),
    enableDSR: field(flag, {
      ...WINDOWS,
      flag: "enable-dsr",
      help: "Endpoints answer the clients of ClusterIPs directly (direct server return).",
    }),
    rootHnsEndpointName: field(text, {
      ...WINDOWS,
      flag: "root-hnsendpoint-name",
      default: "cbr0",
      help: "Name of the HCN endpoint that stands for the node, for --forward-healthcheck-vip.",
    }),
    forwardHealthCheckVip: field(flag, {
      ...WINDOWS,
      flag: "forward-healthcheck-vip",
      help: "Lead health checks of load-balancer addresses to the node.",
    }),
  }),
  detectLocalMode: field(oneOf(LOCAL_MODES, ", or empty for ClusterCIDR"), {
    flag: "detect-local-mode",
    group: "local",
    type: flagTypes.localMode,
    help: "How to detect local traffic: ClusterCIDR (default), NodeCIDR, BridgeInterface or InterfaceNamePrefix.",
    external: ({ detectLocal }) => LOCAL_MODE_OF[detectLocal.kind],
  }),
  detectLocal: block("local", {
    bridgeInterface: field(text, {
      flag: "pod-bridge-interface",
      help: "Name of the bridge, for BridgeInterface.",
    }),
    interfaceNamePrefix: field(text, {
      flag: "pod-interface-name-prefix",
      help: "Prefix of interface names, for InterfaceNamePrefix.",
    }),
  }),
  clusterCIDR: field(z.string({ error: "must be text: CIDRs separated by commas" }), {
    flag: "cluster-cidr",
    group: "local",
    type: flagTypes.string,
    help: "Pod CIDRs of the cluster, comma separated; several per family are allowed. Traffic from elsewhere is masqueraded.",
    differs: "any number of CIDRs of each family, where kube-proxy takes one",
    external: ({ clusterCIDRs }) => clusterCIDRs.join(","),
  }),
  nodePortAddresses: field(list("CIDRs and the words primary, localhost, all"), {
    flag: "nodeport-addresses",
    group: "node",
    help: "Node addresses that serve node ports: CIDRs, primary, localhost or all. Default: all, in nftables mode primary. Loopback addresses are served in iptables and userspace mode (IPv4), and for TCP in nftables mode with the feature gate KubeProxyNFTablesLocalhostNodePorts.",
    differs:
      "addresses come and go at once; `primary` selects nothing in a family without a Node IP, kube-proxy then every address",
    external: nodePortAddressesOf,
  }),
  oomScoreAdj: field(wholeNumber(-1000, 1000), {
    flag: "oom-score-adj",
    group: "node",
    default: "-999",
    help: "oom-score-adj of the process, from -1000 to 1000.",
    external: ({ oomScoreAdj }) => oomScoreAdj,
  }),
  conntrack: block("tracking", {
    maxPerCore: field(wholeNumber(0), {
      flag: "conntrack-max-per-core",
      default: "32768",
      help: "Maximum number of tracked connections per CPU core. 0 keeps the kernel's setting.",
      external: ({ conntrack }) => conntrack.maxPerCore,
    }),
    min: field(wholeNumber(0), {
      flag: "conntrack-min",
      default: "131072",
      help: "Minimum limit of tracked connections, regardless of --conntrack-max-per-core.",
      external: ({ conntrack }) => conntrack.min,
    }),
    tcpEstablishedTimeout: conntrackTimeout("tcpEstablishedTimeout", {
      flag: "conntrack-tcp-timeout-established",
      default: "24h0m0s",
      help: "Idle timeout of established TCP connections. 0 keeps the kernel's setting.",
    }),
    tcpCloseWaitTimeout: conntrackTimeout("tcpCloseWaitTimeout", {
      flag: "conntrack-tcp-timeout-close-wait",
      default: "1h0m0s",
      help: "Timeout of TCP connections in CLOSE_WAIT. 0 keeps the kernel's setting.",
    }),
    tcpBeLiberal: field(flag, {
      flag: "conntrack-tcp-be-liberal",
      help: "Set nf_conntrack_tcp_be_liberal: out-of-window packets are not marked INVALID.",
      external: ({ conntrack }) => conntrack.tcpBeLiberal,
    }),
    udpTimeout: conntrackTimeout("udpTimeout", {
      flag: "conntrack-udp-timeout",
      help: "Idle timeout of UDP flows without a reply. 0 keeps the kernel's setting.",
    }),
    udpStreamTimeout: conntrackTimeout("udpStreamTimeout", {
      flag: "conntrack-udp-timeout-stream",
      help: "Idle timeout of UDP flows with replies. 0 keeps the kernel's setting.",
    }),
  }),
  configSyncPeriod: field(duration, {
    flag: "config-sync-period",
    group: "api",
    default: "15m0s",
    help: "No effect: watches keep objects up to date.",
    differs: "taken and ignored: objects are kept up to date by their watch, and nothing is announced again",
    external: ({ configSyncPeriodMs }) => formatDuration(configSyncPeriodMs),
  }),
  portRange: field(text, {
    flag: "proxy-port-range",
    group: "userspace",
    help: "Ports that relays listen on, such as 10000-20000 or 10000+100. Empty: any.",
    note: "of userspace mode, as kube-proxy up to v1.25 had it",
    meaning: "`portRange`; kube-proxy had this flag up to v1.25",
  }),
  udpIdleTimeout: field(duration, {
    flag: "udp-timeout",
    group: "userspace",
    default: "250ms",
    help: "Idle timeout of relayed UDP flows. Must be greater than 0.",
    differs: "of userspace mode; kube-proxy from v1.26 on takes it for an unknown field",
    meaning: "`udpIdleTimeout`; kube-proxy had this flag up to v1.25",
    external: () => undefined,
  }),
  windowsRunAsService: field(flag, {
    notApplicable: "a service manager such as WinSW or NSSM runs the agent on [Windows](windows.md)",
    flag: "windows-service",
    group: "windows",
    external: () => undefined,
  }),
});

/** Absent where it says what the mode does by itself. */
function nodePortAddressesOf(config: ResolvedConfig): readonly string[] | null {
  const { nodePortAddresses: given } = config;
  return !isInUse("nftables", config) && given.length === 1 && given[0] === "all" ? null : given;
}

/** What a KubeProxyConfiguration said, durations in milliseconds, nothing defaulted. */
export type KubeProxyInput = z.output<typeof kubeProxySchema>;
