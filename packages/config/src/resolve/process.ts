/** How the process reaches the API server, logs, and what it serves of itself. */

import type { Report } from "../report.ts";
import type {
  AgentConfig,
  ClientConnection,
  ConntrackSettings,
  LoggingSettings,
  ServiceMetricsSettings,
} from "../types.ts";
import { isGateOn, resolveFeatures } from "./gates.ts";
import { type ConfigInput, periodOf } from "./input.ts";
import type { Instance, InstanceDefaults } from "./instance.ts";
import { resolveMultiCNI } from "./multi-cni.ts";

type ProcessSettings = Pick<
  AgentConfig,
  | "client"
  | "conntrack"
  | "logging"
  | "multiCNI"
  | "oomScoreAdj"
  | "configSyncPeriodMs"
  | "featureGates"
  | "features"
  | "bindAddressHardFail"
  | "enableProfiling"
  | "showHiddenMetricsForVersion"
  | "stateDir"
  | "manifests"
  | "serviceMetrics"
>;

const STATE_DIR = "/run/fairlead";

/** Everything about the process that is the same in every mode. */
export function resolveProcess(input: ConfigInput, instance: Instance, report: Report): ProcessSettings {
  const { kubeProxy, options } = input;
  const configSyncPeriodMs = periodOf(input, kubeProxy.configSyncPeriod, 15 * 60_000);
  if (configSyncPeriodMs <= 0) report.error("configSyncPeriod", "must be greater than 0, such as 15m0s");
  const featureGates = kubeProxy.featureGates ?? {};
  if (Object.values(kubeProxy.winkernel).some(Boolean) || kubeProxy.windowsRunAsService === true) {
    report.warn("winkernel and windowsRunAsService only work on Windows; ignored");
  }
  const serviceMetrics = resolveServiceMetrics(input, report);
  return {
    client: resolveClient(input, report),
    conntrack: resolveConntrack(input, instance.defaults, report),
    logging: resolveLogging(input, report),
    multiCNI: resolveMultiCNI(input, report),
    oomScoreAdj: kubeProxy.oomScoreAdj ?? -999,
    configSyncPeriodMs,
    featureGates,
    features: resolveFeatures(input, report),
    bindAddressHardFail: kubeProxy.bindAddressHardFail ?? false,
    enableProfiling: kubeProxy.enableProfiling ?? false,
    showHiddenMetricsForVersion: kubeProxy.showHiddenMetricsForVersion ?? "",
    stateDir: stateDirOf(options.stateDir ?? STATE_DIR, instance.serviceProxyName),
    ...(options.manifests === undefined ? {} : { manifests: options.manifests }),
    ...(serviceMetrics && { serviceMetrics }),
  };
}

function stateDirOf(given: string, serviceProxyName: string): string {
  return serviceProxyName === "" ? given : `${given}/instances/${serviceProxyName}`;
}

function resolveClient({ kubeProxy, options }: ConfigInput, report: Report): ClientConnection {
  const { kubeconfig, qps, burst, contentType, acceptContentTypes } = kubeProxy.clientConnection;
  const { master } = options;
  if (master !== undefined && !isHttpURL(master)) {
    report.error("master", "must be the URL of an API server, such as https://192.0.2.2:6443", master);
  }
  return {
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
    ...(master === undefined ? {} : { master }),
    allowExecCredentials: options.allowExecCredentials,
    qps: qps === undefined || qps === 0 ? 5 : qps,
    burst: burst === undefined || burst === 0 ? 10 : burst,
    contentType: contentType || "application/vnd.kubernetes.protobuf",
    acceptContentTypes: acceptContentTypes ?? "",
  };
}

/** client-go takes `host:port` too, as plain http. */
function isHttpURL(text: string): boolean {
  return (
    URL.canParse(text.includes("://") ? text : `http://${text}`) && /^(https?:\/\/|[^:/]+(:\d+)?(\/|$))/.test(text)
  );
}

function resolveConntrack(
  { kubeProxy: { conntrack } }: ConfigInput,
  { conntrack: defaults }: InstanceDefaults,
  report: Report,
): ConntrackSettings {
  for (const name of ["tcpEstablishedTimeout", "tcpCloseWaitTimeout", "udpTimeout", "udpStreamTimeout"] as const) {
    if ((conntrack[name] ?? 0) < 0)
      report.error(`conntrack.${name}`, "must not be negative; 0s keeps the kernel's setting");
  }
  return {
    maxPerCore: conntrack.maxPerCore ?? defaults.maxPerCore,
    min: conntrack.min ?? defaults.min,
    tcpEstablishedTimeoutMs: conntrack.tcpEstablishedTimeout ?? defaults.tcpEstablishedTimeoutMs,
    tcpCloseWaitTimeoutMs: conntrack.tcpCloseWaitTimeout ?? defaults.tcpCloseWaitTimeoutMs,
    tcpBeLiberal: conntrack.tcpBeLiberal ?? false,
    udpTimeoutMs: conntrack.udpTimeout ?? 0,
    udpStreamTimeoutMs: conntrack.udpStreamTimeout ?? 0,
  };
}

function resolveLogging(input: ConfigInput, report: Report): LoggingSettings {
  const { kubeProxy } = input;
  const { format = "text", verbosity = 0, flushFrequency = 0, vmodule = [], options } = kubeProxy.logging;
  if (flushFrequency < 0) report.error("logging.flushFrequency", "must be greater than 0, such as 5s");
  if (vmodule.length > 0 && format !== "text") report.error("logging.vmodule", "is only valid with format text");
  if (format === "json" && !isGateOn(input, "LoggingBetaOptions"))
    report.error("logging.format", "needs the feature gate LoggingBetaOptions=true");
  for (const name of ["text", "json"] as const) {
    const { splitStream = false, infoBufferSize = "0" } = options?.[name] ?? {};
    const path = `logging.options.${name}.${splitStream ? "splitStream" : "infoBufferSize"}`;
    if (!splitStream && infoBufferSize === "0") continue;
    if (isGateOn(input, "LoggingAlphaOptions"))
      report.warn(`${report.name(path)}: ignored; Fairlead logs to one stream`);
    else report.error(path, "needs the feature gate LoggingAlphaOptions=true");
  }
  return { format, verbosity, flushFrequencyMs: flushFrequency === 0 ? 5_000 : flushFrequency, vmodule };
}

const ALL = "*";
const MAX_SERIES = 2_000;
/** A label of RFC 1123, as names of namespaces are. */
const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** Undefined: no namespace is named. */
function resolveServiceMetrics({ fairlead, options }: ConfigInput, report: Report): ServiceMetricsSettings | undefined {
  const { namespaces = [], maxSeries = MAX_SERIES } = fairlead.serviceMetrics;
  for (const [index, name] of namespaces.entries()) {
    if (name === ALL || NAMESPACE.test(name)) continue;
    report.error(`serviceMetrics.namespaces[${index}]`, "must be the name of a namespace, or * for all", name);
  }
  if (namespaces.length === 0) return undefined;
  if (options.userspaceOnly) {
    report.error("serviceMetrics.namespaces", "are read from connection tracking, which --userspace-only does not use");
  }
  return { namespaces: namespaces.includes(ALL) ? "all" : [...new Set(namespaces)], maxSeries };
}
