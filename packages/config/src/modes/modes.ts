/** The settings of each mode, and what they mean for the others: node ports, the fast path, relays. */

import { familyOf, IP_FAMILIES, type IPFamily, isLoopback, parseAddress, parseCIDRLeniently } from "@fairlead/base";
import { formatDuration } from "../duration.ts";
import type { Report } from "../report.ts";
import { isGateOn } from "../resolve/gates.ts";
import { type ConfigInput, canonicalList, periodOf } from "../resolve/input.ts";
import type { InstanceDefaults } from "../resolve/instance.ts";
import { MODE_FORM } from "../table/kube-proxy.ts";
import { enumeration } from "../table/scalars.ts";
import type {
  AgentConfig,
  FastPathSettings,
  IptablesSettings,
  IpvsSettings,
  KernelspaceSettings,
  LoopbackNodePorts,
  NftablesSettings,
  ProxyMode,
  UserspaceSettings,
} from "../types.ts";

type ModeSettings = Pick<
  AgentConfig,
  "mode" | "iptables" | "ipvs" | "nftables" | "userspace" | "kernelspace" | "portRange" | "resetStaleTCP"
>;

/** Settings of every mode, and of the one in use; what the others say wrong does not matter, as for kube-proxy. */
export function resolveModes(input: ConfigInput, defaults: InstanceDefaults, report: Report): ModeSettings {
  const mode = modeOf(input, defaults);
  checkPlatform(input, mode, report);
  if (mode === "ipvs" && !isGateOn(input, "KubeProxyIPVS"))
    report.error("mode", "needs the feature gate KubeProxyIPVS=true");
  const iptables = resolveIptables(input);
  const nftables = resolveNftables(input, report);
  const settings = {
    iptables,
    ipvs: { ...iptables, ...resolveIpvs(input, mode === "ipvs", report) },
    nftables,
    userspace: { ...iptables, ...resolveUserspace(input, mode === "userspace", report) },
    kernelspace: { ...iptables, ...resolveKernelspace(input, mode === "kernelspace", report) },
  };
  checkPeriods(mode === "userspace" || mode === "kernelspace" ? "iptables" : mode, settings[mode], report);
  if (mode === "nftables" && (nftables.masqueradeBit < 0 || nftables.masqueradeBit > 31)) {
    report.error("nftables.masqueradeBit", "must be a whole number from 0 to 31");
  }
  const portRange = mode === "userspace" ? readPortRange(input.kubeProxy.portRange, report) : undefined;
  return {
    mode,
    ...settings,
    resetStaleTCP: resolveResetStaleTCP(input, mode, report),
    ...(portRange === undefined ? {} : { portRange }),
  };
}

/** The mode that is asked for; Windows has one only. */
export function modeOf({ kubeProxy, platform }: ConfigInput, defaults: Pick<InstanceDefaults, "mode">): ProxyMode {
  return kubeProxy.mode ?? (platform === "windows" ? "kernelspace" : defaults.mode);
}

function checkPlatform({ platform }: ConfigInput, mode: ProxyMode, report: Report): void {
  if (platform === "linux" && mode === "kernelspace") report.error("mode", `only works on Windows; ${MODE_FORM}`);
  if (platform === "windows" && mode !== "kernelspace") {
    report.error("mode", "only works on Linux; must be kernelspace, or empty for it");
  }
}

/** kube-proxy's on Windows (cmd/kube-proxy/app/server_windows.go). */
const ROOT_ENDPOINT = "cbr0";

function resolveKernelspace(
  input: ConfigInput,
  inUse: boolean,
  report: Report,
): Omit<KernelspaceSettings, keyof IptablesSettings> {
  const { networkName, sourceVip, enableDSR, rootHnsEndpointName, forwardHealthCheckVip } = input.kubeProxy.winkernel;
  if (inUse && enableDSR === true && !isGateOn(input, "WinDSR")) {
    report.error("winkernel.enableDSR", "needs the feature gate WinDSR=true");
  }
  if (inUse && (sourceVip ?? "") !== "" && parseAddress(sourceVip ?? "") === undefined) {
    report.error("winkernel.sourceVip", "must be an IP address, such as 10.244.1.2");
  }
  return {
    networkName: networkName ?? "",
    sourceVip: sourceVip ?? "",
    enableDSR: enableDSR ?? false,
    rootHnsEndpointName: rootHnsEndpointName || ROOT_ENDPOINT,
    forwardHealthCheckVip: forwardHealthCheckVip ?? false,
    overlay: isGateOn(input, "WinOverlay"),
  };
}

/** Where node ports are served when nothing is said; kube-proxy's nftables mode differs from its others. */
export function defaultNodePortAddresses(mode: ProxyMode): readonly string[] {
  return [mode === "nftables" ? "primary" : "all"];
}

/** What `nodePortAddresses` says and the mode does not do; upstream is silent. */
export function warnOfNodePortAddresses(
  { mode, features, nodePortAddresses }: Pick<AgentConfig, "mode" | "features" | "nodePortAddresses">,
  report: Report,
): void {
  const warn = (what: string) => report.warn(`${report.name("nodePortAddresses")}: ${what}`);
  // Upstream: pkg/proxy/winkernel/proxier.go:698, "windows listens to all node addresses".
  if (mode === "kernelspace" && nodePortAddresses.some((one) => one !== "all"))
    warn("ignored; Windows serves node ports at all addresses of the node");
  if (mode !== "nftables" || features.nftLocalhostNodePorts) return;
  if (!IP_FAMILIES.some((family) => namesLoopback(nodePortAddresses, family))) return;
  warn(
    "nftables mode does not serve node ports on loopback addresses; the feature gate " +
      "KubeProxyNFTablesLocalhostNodePorts=true relays TCP there",
  );
}

/** The configuration as it is for another mode than the one that it names: unset fields follow the mode. */
export function withMode(config: AgentConfig, mode: ProxyMode): AgentConfig {
  const given = config.provenance["nodePortAddresses"] !== undefined;
  return { ...config, mode, nodePortAddresses: given ? config.nodePortAddresses : defaultNodePortAddresses(mode) };
}

/** The networks that decide which devices have a fast path; canonical CIDRs. */
export interface FastPathNetworks {
  /** Those of this cluster's pods. */
  readonly pods: readonly string[];
  /** Those of excluded networks. */
  readonly excluded: readonly string[];
}

type Networks = Pick<AgentConfig, "clusterCIDRs" | "multiCNI">;

/** As the configuration names them: learned networks are not among them. */
export function fastPathNetworks({ clusterCIDRs: pods, multiCNI }: Networks): FastPathNetworks {
  return { pods, excluded: multiCNI.excludeClusterCIDRs.flatMap((text) => parseCIDRLeniently(text)?.text ?? []) };
}

/** Why `devices: auto` disables the fast path; undefined: it can choose, or devices are named. */
export function whyNotAuto({
  nftables,
  clusterCIDRs,
  multiCNI,
}: Networks & Pick<AgentConfig, "nftables">): string | undefined {
  if (nftables.fastPath?.devices !== "auto") return undefined;
  const { excludeCIDRsFrom, clusterCIDRsFrom } = multiCNI;
  if (excludeCIDRsFrom.length + clusterCIDRsFrom.length > 0)
    return "devices: auto does not know networks that are learned; name the devices";
  return clusterCIDRs.length > 0 ? undefined : "devices: auto needs clusterCIDR; give it, or name the devices";
}

const SYNC_MS = 30_000;
const MIN_SYNC_MS = 1_000;
const MASQUERADE_BIT = 14;

function resolveIptables(input: ConfigInput): IptablesSettings {
  const { iptables } = input.kubeProxy;
  return {
    masqueradeBit: iptables.masqueradeBit ?? MASQUERADE_BIT,
    masqueradeAll: iptables.masqueradeAll ?? false,
    localhostNodePorts: iptables.localhostNodePorts ?? true,
    syncPeriodMs: periodOf(input, iptables.syncPeriod, SYNC_MS),
    minSyncPeriodMs: periodOf(input, iptables.minSyncPeriod, MIN_SYNC_MS),
  };
}

const SCHEDULERS = ["rr", "wrr", "lc", "wlc", "lblc", "lblcr", "sh", "dh", "sed", "nq", "mh", "fo", "ovf", "twos"];

const DEFAULT_SCHEDULER = "rr";

function resolveIpvs(
  input: ConfigInput,
  inUse: boolean,
  report: Report,
): Omit<IpvsSettings, "masqueradeBit" | "masqueradeAll"> {
  const { ipvs } = input.kubeProxy;
  const { scheduler = DEFAULT_SCHEDULER } = ipvs;
  const isKnown = SCHEDULERS.includes(scheduler);
  if (inUse && !isKnown) report.error("ipvs.scheduler", `must be ${enumeration(SCHEDULERS)}`);
  for (const name of ["tcpTimeout", "tcpFinTimeout", "udpTimeout"] as const) {
    if (inUse && (ipvs[name] ?? 0) < 0)
      report.error(`ipvs.${name}`, "must not be negative; 0s keeps the kernel's setting");
  }
  return {
    syncPeriodMs: periodOf(input, ipvs.syncPeriod, SYNC_MS),
    // A file's zero is zero here: v1alpha1 has no default for it, the flag has.
    minSyncPeriodMs: ipvs.minSyncPeriod ?? (input.origin === "file" ? 0 : MIN_SYNC_MS),
    scheduler: isKnown ? scheduler : DEFAULT_SCHEDULER,
    excludeCIDRs: canonicalList(report, "ipvs.excludeCIDRs", ipvs.excludeCIDRs ?? [], { inUse }),
    strictARP: ipvs.strictARP ?? false,
    tcpTimeoutMs: ipvs.tcpTimeout ?? 0,
    tcpFinTimeoutMs: ipvs.tcpFinTimeout ?? 0,
    udpTimeoutMs: ipvs.udpTimeout ?? 0,
    fallback: input.fairlead.ipvs.fallback ?? true,
  };
}

function resolveNftables(input: ConfigInput, report: Report): NftablesSettings {
  const { nftables, nodePortAddresses = [] } = input.kubeProxy;
  const fastPath = resolveFastPath(input, report);
  return {
    masqueradeBit: nftables.masqueradeBit ?? MASQUERADE_BIT,
    masqueradeAll: nftables.masqueradeAll ?? false,
    syncPeriodMs: periodOf(input, nftables.syncPeriod, SYNC_MS),
    minSyncPeriodMs: periodOf(input, nftables.minSyncPeriod, MIN_SYNC_MS),
    loopbackNodePorts: loopbackNodePorts(isGateOn(input, "KubeProxyNFTablesLocalhostNodePorts"), nodePortAddresses),
    ...(fastPath !== undefined && { fastPath }),
  };
}

interface Periods {
  readonly syncPeriodMs: number;
  readonly minSyncPeriodMs: number;
}

function checkPeriods(block: Exclude<ProxyMode, "userspace" | "kernelspace">, periods: Periods, report: Report): void {
  const { syncPeriodMs, minSyncPeriodMs } = periods;
  if (syncPeriodMs <= 0) report.error(`${block}.syncPeriod`, "must be greater than 0, such as 30s");
  if (minSyncPeriodMs < 0) report.error(`${block}.minSyncPeriod`, "must not be negative");
  if (syncPeriodMs <= 0 || minSyncPeriodMs <= syncPeriodMs) return;
  const [sync, min] = [`${block}.syncPeriod`, `${block}.minSyncPeriod`];
  // The one that was set is the one to change.
  if (report.given(min) === "") {
    report.error(sync, `must not be shorter than ${report.name(min)}, which is ${formatDuration(minSyncPeriodMs)}`);
  } else {
    report.error(min, `must not be longer than ${report.name(sync)}, which is ${formatDuration(syncPeriodMs)}`);
  }
}

/** `10000-20000`, `10000+100` or one port; empty and `0-0`: any (k8s.io/apimachinery/pkg/util/net.PortRange). */
function readPortRange(text: string | undefined, report: Report): { from: number; to: number } | undefined {
  const [, first, sign, second] = /^\s*(\d+)\s*(?:([-+])\s*(\d+)\s*)?$/.exec(text ?? "0-0") ?? [];
  const from = Number(first);
  const to = sign === "+" ? from + Number(second) : Number(second ?? first);
  if (from === 0 && to === 0) return undefined;
  if (from >= 1 && to <= 65_535 && from <= to) return { from, to };
  report.error("portRange", "must be ports from 1 to 65535, such as 10000-20000 or 10000+100; empty for any");
  return undefined;
}

/** kube-proxy's in v1.25 (--udp-timeout). */
const UDP_IDLE_MS = 250;
/** As long as connection tracking remembers one. */
const TCP_IDLE_MS = 24 * 3_600_000;
/** What kube-proxy raised its limit of open files to in this mode, halved. */
const MAX_SOCKETS = 32_000;
const MAX_SOCKETS_PER_SERVICE = 16_000;

function resolveUserspace(
  input: ConfigInput,
  inUse: boolean,
  report: Report,
): Omit<UserspaceSettings, keyof IptablesSettings> {
  const { udpIdleTimeout = 0 } = input.kubeProxy;
  const { tcpIdleTimeout, maxSockets, maxSocketsPerService } = input.fairlead.userspace;
  const { userspaceOnly } = input.options;
  if (inUse && udpIdleTimeout < 0) report.error("udpIdleTimeout", "must be greater than 0, such as 250ms");
  if ((tcpIdleTimeout ?? 0) < 0) report.error("userspace.tcpIdleTimeout", "must not be negative; 0s means no limit");
  if (userspaceOnly && !inUse) report.error("userspace-only", "needs --proxy-mode=userspace");
  return {
    only: userspaceOnly,
    udpIdleTimeoutMs: udpIdleTimeout === 0 ? UDP_IDLE_MS : udpIdleTimeout,
    tcpIdleTimeoutMs: tcpIdleTimeout ?? TCP_IDLE_MS,
    maxSockets: maxSockets ?? MAX_SOCKETS,
    maxSocketsPerService: maxSocketsPerService ?? MAX_SOCKETS_PER_SERVICE,
  };
}

/** Why a mode has no use for it; absent: it has. */
const USELESS: Partial<Readonly<Record<ProxyMode, string>>> = {
  userspace: "the agent itself terminates the connections",
  kernelspace: "Windows lets no program end the connections of a load balancer",
};

function resolveResetStaleTCP({ fairlead }: ConfigInput, mode: ProxyMode, report: Report): boolean {
  const asked = fairlead.resetStaleTCP ?? false;
  const why = USELESS[mode];
  if (asked && why !== undefined) {
    report.error("resetStaleTCP", `works in iptables, nftables and ipvs mode; in ${mode} mode ${why}`);
  }
  return asked;
}

const DEVICES = "nftables.fastPath.devices";

/** IFNAMSIZ without its zero byte. */
const LONGEST = 15;

/** @returns undefined: no connection bypasses rules */
function resolveFastPath({ fairlead }: ConfigInput, report: Report): FastPathSettings | undefined {
  const { fastPath } = fairlead.nftables;
  if (fastPath === undefined) return undefined;
  if (fastPath.devices === "auto") return { devices: "auto" };
  const devices = [...new Set(fastPath.devices)];
  if (devices.length === 0) report.error(DEVICES, "must name at least one device, such as eth0 or cali*, or be auto");
  for (const device of devices) {
    if (device.length > LONGEST || !/^[^\s/:"]+$/.test(device) || device === "." || device === "..") {
      report.error(
        DEVICES,
        `${JSON.stringify(device)} must be a device name of at most ${LONGEST} characters, such as eth0 or cali*`,
      );
    } else if (device === "lo") report.error(DEVICES, "lo must not be among them: its packets are not forwarded");
  }
  return { devices };
}

/**
 * Upstream: pkg/proxy/nftables/proxier.go, localhostNodePortRejectProtocols (KEP-6032).
 *
 * @param selectors CIDRs and keywords (KubeProxyConfiguration.nodePortAddresses)
 */
function loopbackNodePorts(gate: boolean, selectors: readonly string[]): NftablesSettings["loopbackNodePorts"] {
  const of = (family: IPFamily): LoopbackNodePorts => {
    if (!gate) return "untouched";
    return namesLoopback(selectors, family) ? "relayed" : "refused";
  };
  return { IPv4: of("IPv4"), IPv6: of("IPv6") };
}

/** Whether one of the selectors is of loopback addresses; one that is of others as well, such as `all`, is not. */
function namesLoopback(selectors: readonly string[], family: IPFamily): boolean {
  return selectors.some((one) => one === "localhost" || (familyOf(one) === family && isLoopback(one)));
}
