/** How the process reaches the API server, logs, and what it serves of itself. */

import type { Report } from "../report.ts";
import type {
  AgentConfig,
  CIDRChanges,
  CIDRSource,
  ClientConnection,
  ConntrackSettings,
  LoggingSettings,
  MultiCNISettings,
  ServiceMetricsSettings,
  ServiceRuleSetting,
} from "../types.ts";
import { isGateOn, resolveFeatures } from "./gates.ts";
import { type ConfigInput, periodOf } from "./input.ts";
import type { Instance, InstanceDefaults } from "./instance.ts";

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
  warnOfWindows(input, report);
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
    stateDir: stateDirOf(options.stateDir ?? input.stateDir ?? STATE_DIR, instance.serviceProxyName),
    ...(options.manifests === undefined ? {} : { manifests: options.manifests }),
    ...(serviceMetrics && { serviceMetrics }),
  };
}

function warnOfWindows({ kubeProxy, platform }: ConfigInput, report: Report): void {
  const { winkernel, windowsRunAsService: asService } = kubeProxy;
  if (platform === "linux" && (Object.values(winkernel).some(Boolean) || asService === true)) {
    report.warn("winkernel and windowsRunAsService only work on Windows; ignored");
  } else if (platform === "windows" && asService === true) {
    report.error("windowsRunAsService", "the agent does not speak to the service manager; run it by WinSW or NSSM");
  }
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

const SIDES = ["excludeCIDRsFrom", "clusterCIDRsFrom"] as const;

/** The endpoint filter's part, and where its CIDRs are learned from. */
function resolveMultiCNI({ fairlead: { multiCNI } }: ConfigInput, report: Report): MultiCNISettings {
  const sources = {
    excludeCIDRsFrom: multiCNI.excludeCIDRsFrom ?? [],
    clusterCIDRsFrom: multiCNI.clusterCIDRsFrom ?? [],
  };
  checkSources(sources, report);
  const learns = [...sources.excludeCIDRsFrom, ...sources.clusterCIDRsFrom].length > 0;
  if (learns && multiCNI.excludedFrontends === undefined) warnOfFrontends(report);
  return {
    excludeClusterCIDRs: multiCNI.excludeClusterCIDRs ?? [],
    ...sources,
    cidrChanges: resolveChanges(multiCNI.cidrChanges, report),
    mixedServices: multiCNI.mixedServices ?? "own-endpoints",
    excludedFrontends: multiCNI.excludedFrontends ?? "all",
    ...(multiCNI.masqueradeToExcluded !== undefined && { masqueradeToExcluded: multiCNI.masqueradeToExcluded }),
    ownershipAnnotation: multiCNI.ownershipAnnotation ?? true,
    serviceRules: (multiCNI.serviceRules ?? []).map(resolveRule),
    protectedServices: protectedServices(multiCNI.protectedServices ?? [], report),
    ...resolveConsent(multiCNI.consentNamespace, report),
  };
}

/** That clients outside of the other networks get no answer was not configured: it is only the default. */
function warnOfFrontends(report: Report): void {
  report.warn(
    `${report.name("multiCNI.excludedFrontends")}: is not set, so services of other networks are left to them for all ` +
      "clients; with excluded-clients this proxy answers nodes, its own pods and clients from outside",
  );
}

/** `namespace/name` each. */
function protectedServices(given: readonly string[], report: Report): readonly string[] {
  for (const [at, one] of given.entries()) {
    if (/^[^/]+\/[^/]+$/.test(one)) continue;
    report.error(`multiCNI.protectedServices[${at}]`, "must be NAMESPACE/NAME, such as kube-system/coredns", one);
  }
  return given;
}

function resolveConsent(namespace: string | undefined, report: Report): Pick<MultiCNISettings, "consentNamespace"> {
  if (namespace === undefined) return {};
  if (!LABEL.test(namespace)) report.error("multiCNI.consentNamespace", "must be a namespace, such as kube-system");
  return { consentNamespace: namespace };
}

/** Name of a namespace (RFC 1123 label). */
const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

/** A source that is listed twice would say of its CIDRs that they are both, or be read in two ways. */
function checkSources(sources: Pick<MultiCNISettings, (typeof SIDES)[number]>, report: Report): void {
  const seen = new Map<string, string>();
  for (const side of SIDES) {
    const path = `multiCNI.${side}`;
    for (const [at, one] of sources[side].entries()) {
      const name = nameOf(one);
      const before = seen.get(name);
      if (before !== undefined) report.error(`${path}[${at}]`, `is already listed in ${report.name(before)}`, name);
      seen.set(name, path);
      if (one.source !== "custom" && one.vpcs !== undefined && one.source !== "kube-ovn-subnets") {
        report.error(`${path}[${at}].vpcs`, "is for kube-ovn-subnets only");
      }
      checkObject(`${path}[${at}]`, one, report);
    }
  }
}

function checkObject(path: string, { source, namespace, name }: CIDRSource, report: Report): void {
  if (namespace === undefined && name === undefined) return;
  if (source !== "flannel" && source !== "custom") {
    report.error(`${path}.namespace`, "and name are for flannel and custom only", namespace ?? "");
  } else if (namespace === undefined || name === undefined) {
    report.error(`${path}.${namespace === undefined ? "namespace" : "name"}`, "is missing: both, or neither", "");
  }
}

function nameOf(one: CIDRSource): string {
  return one.source === "custom" ? one.resource : one.source;
}

type GivenRule = NonNullable<ConfigInput["fairlead"]["multiCNI"]["serviceRules"]>[number];

function resolveRule(given: GivenRule): ServiceRuleSetting {
  const subject = "annotation" in given ? { annotation: given.annotation } : { namespaceLabel: given.namespaceLabel };
  return {
    ...subject,
    ...(given.in && { in: given.in }),
    ...(given.notIn && { notIn: given.notIn.filter((value) => typeof value === "string") }),
    ...(given.notIn?.some((value) => typeof value !== "string") && { notInDefaultVPC: true as const }),
    ownership: given.ownership,
    ...(given.excludedFrontends && { excludedFrontends: given.excludedFrontends }),
  };
}

interface GivenChanges {
  readonly debounce?: number | undefined;
  readonly removalDelay?: number | undefined;
  readonly maxForeignPercent?: number | undefined;
}

function resolveChanges(given: GivenChanges, report: Report): CIDRChanges {
  const { debounce = 1_000, removalDelay = 600_000, maxForeignPercent = 50 } = given;
  if (debounce < 0) report.error("multiCNI.cidrChanges.debounce", "must not be negative, such as 1s");
  if (removalDelay < 0) report.error("multiCNI.cidrChanges.removalDelay", "must not be negative, such as 10m");
  return { debounceMs: debounce, removalDelayMs: removalDelay, maxForeignPercent };
}
