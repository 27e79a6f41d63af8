import { formatDuration } from "../duration.ts";
import type { IptablesSettings, IpvsSettings, NftablesSettings } from "../mode-settings.ts";
import type { Report } from "../report.ts";
import { isGateOn } from "../resolve/gates.ts";
import { type ConfigInput, periodOf } from "../resolve/input.ts";
import type { InstanceDefaults } from "../resolve/instance.ts";
import { canonicalList } from "../resolve/lists.ts";
import { resolveUserspace } from "../resolve/userspace.ts";
import { enumeration } from "../table/scalars.ts";
import type { AgentConfig, ProxyMode } from "../types.ts";
import { resolveFastPath } from "./fast-path.ts";
import { loopbackNodePorts } from "./node-port-addresses.ts";
import { resolveResetStaleTCP } from "./reset-stale-tcp.ts";

type ModeSettings = Pick<
  AgentConfig,
  "mode" | "iptables" | "ipvs" | "nftables" | "userspace" | "portRange" | "resetStaleTCP"
>;

const SYNC_MS = 30_000;
const MIN_SYNC_MS = 1_000;
const MASQUERADE_BIT = 14;

/** Settings of every mode, and of the one in use; what the others say wrong does not matter, as for kube-proxy. */
export function resolveModes(input: ConfigInput, defaults: InstanceDefaults, report: Report): ModeSettings {
  const mode = input.kubeProxy.mode ?? defaults.mode;
  if (mode === "ipvs" && !isGateOn(input, "KubeProxyIPVS"))
    report.error("mode", "needs the feature gate KubeProxyIPVS=true");
  const iptables = resolveIptables(input);
  const nftables = resolveNftables(input, report);
  const settings = {
    iptables,
    ipvs: { ...iptables, ...resolveIpvs(input, mode === "ipvs", report) },
    nftables,
    userspace: { ...iptables, ...resolveUserspace(input, mode === "userspace", report) },
  };
  checkPeriods(mode === "userspace" ? "iptables" : mode, settings[mode], report);
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

/** The schedulers of the kernel. */
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

function checkPeriods(block: Exclude<ProxyMode, "userspace">, periods: Periods, report: Report): void {
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
