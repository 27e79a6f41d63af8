import { dump } from "js-yaml";
import { formatSocketAddress } from "./address.ts";
import { formatDuration } from "./duration.ts";
import { modeBlocks, nodePortAddressesOf } from "./modes/external.ts";
import type { ConfigInput } from "./resolve/input.ts";
import { API_VERSION, KIND, type KubeProxyInput } from "./schema/kube-proxy.ts";
import type { ResolvedConfig } from "./types.ts";

const LOCAL_MODES = {
  none: "ClusterCIDR",
  cidrs: "ClusterCIDR",
  "node-cidr": "NodeCIDR",
  bridge: "BridgeInterface",
  "interface-prefix": "InterfaceNamePrefix",
} as const;

type Block<Name extends keyof KubeProxyInput> = Readonly<Record<keyof NonNullable<KubeProxyInput[Name]>, unknown>>;

/** kube-proxy leaves these out where they are empty, and no longer writes `udpIdleTimeout`. */
type Omitted = "featureGates" | "windowsRunAsService" | "udpIdleTimeout";

/** A field of the schema that is not written here does not compile. */
type External = Readonly<Record<Exclude<keyof KubeProxyInput, Omitted>, unknown>>;

/**
 * The configuration as a KubeProxyConfiguration v1alpha1 with its defaults, in the form in which kube-proxy writes it
 * (--write-config-to) and serves it (/configz): periods stand only in the block of the mode in use, keys are sorted.
 */
export function toKubeProxyConfiguration(config: ResolvedConfig, { kubeProxy }: ConfigInput): External {
  return {
    apiVersion: API_VERSION,
    bindAddress: config.bindAddress,
    bindAddressHardFail: config.bindAddressHardFail,
    clientConnection: {
      acceptContentTypes: config.client.acceptContentTypes,
      burst: config.client.burst,
      contentType: config.client.contentType,
      kubeconfig: config.client.kubeconfig ?? "",
      qps: config.client.qps,
    },
    clusterCIDR: config.clusterCIDRs.join(","),
    configSyncPeriod: formatDuration(config.configSyncPeriodMs),
    conntrack: conntrackBlock(config),
    detectLocal: {
      bridgeInterface: kubeProxy.detectLocal.bridgeInterface ?? "",
      interfaceNamePrefix: kubeProxy.detectLocal.interfaceNamePrefix ?? "",
    },
    detectLocalMode: LOCAL_MODES[config.detectLocal.kind],
    enableProfiling: config.enableProfiling,
    ...(Object.keys(config.featureGates).length === 0 ? {} : { featureGates: config.featureGates }),
    healthzBindAddress: config.healthzBindAddress === undefined ? "" : formatSocketAddress(config.healthzBindAddress),
    hostnameOverride: config.hostnameOverride ?? "",
    ...modeBlocks(config, kubeProxy.ipvs.scheduler ?? ""),
    kind: KIND,
    logging: loggingBlock(config, kubeProxy.logging.options ?? {}),
    metricsBindAddress: formatSocketAddress(config.metricsBindAddress),
    mode: config.mode,
    nodePortAddresses: nodePortAddressesOf(config),
    oomScoreAdj: config.oomScoreAdj,
    portRange: kubeProxy.portRange ?? "",
    showHiddenMetricsForVersion: config.showHiddenMetricsForVersion,
    winkernel: {
      enableDSR: kubeProxy.winkernel.enableDSR ?? false,
      forwardHealthCheckVip: kubeProxy.winkernel.forwardHealthCheckVip ?? false,
      networkName: kubeProxy.winkernel.networkName ?? "",
      rootHnsEndpointName: kubeProxy.winkernel.rootHnsEndpointName ?? "",
      sourceVip: kubeProxy.winkernel.sourceVip ?? "",
    },
  };
}

export function toYAML(configuration: Readonly<Record<string, unknown>>): string {
  return dump(configuration, { sortKeys: true, seqNoIndent: true, quoteStyle: "double", lineWidth: -1 });
}

function conntrackBlock({ conntrack }: ResolvedConfig): Block<"conntrack"> {
  return {
    maxPerCore: conntrack.maxPerCore,
    min: conntrack.min,
    tcpBeLiberal: conntrack.tcpBeLiberal,
    tcpCloseWaitTimeout: formatDuration(conntrack.tcpCloseWaitTimeoutMs),
    tcpEstablishedTimeout: formatDuration(conntrack.tcpEstablishedTimeoutMs),
    udpStreamTimeout: formatDuration(conntrack.udpStreamTimeoutMs),
    udpTimeout: formatDuration(conntrack.udpTimeoutMs),
  };
}

type LoggingOptions = NonNullable<ConfigInput["kubeProxy"]["logging"]["options"]>;

function loggingBlock({ logging }: ResolvedConfig, options: LoggingOptions): Record<string, unknown> {
  const routing = (given: LoggingOptions["text"]) => ({
    infoBufferSize: given?.infoBufferSize ?? "0",
    ...(given?.splitStream === true ? { splitStream: true } : {}),
  });
  return {
    flushFrequency: formatDuration(logging.flushFrequencyMs),
    format: logging.format,
    options: { json: routing(options.json), text: routing(options.text) },
    verbosity: logging.verbosity,
    ...(logging.vmodule.length === 0 ? {} : { vmodule: logging.vmodule }),
  };
}
