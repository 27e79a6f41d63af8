import * as z from "zod";
import {
  address,
  decimal,
  duration,
  durationOrNanoseconds,
  enumeration,
  flag,
  list,
  oneOf,
  PRIVATE,
  quantity,
  socketAddress,
  text,
  wholeNumber,
} from "./scalars.ts";

/**
 * KubeProxyConfiguration, kubeproxy.config.k8s.io/v1alpha1: every field of k8s.io/kube-proxy/config/v1alpha1, all
 * optional; defaults come later, because some depend on others. What is checked here holds in every mode.
 */

export const API_VERSION = "kubeproxy.config.k8s.io/v1alpha1";
export const KIND = "KubeProxyConfiguration";

export const HEALTHZ_PORT = 10_256;
export const METRICS_PORT = 10_249;

export const PROXY_MODES = ["iptables", "ipvs", "nftables", "userspace"] as const;
export const LOCAL_MODES = ["ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix"] as const;
const MODE_FORM = `must be ${enumeration(PROXY_MODES)}, or empty for iptables`;

const mode = text
  .transform((value, context) => {
    const known = PROXY_MODES.find((name) => name === value);
    if (known !== undefined) return known;
    const windows = value === "kernelspace" ? "only works on Windows; " : "";
    context.addIssue({ code: "custom", message: `${windows}${MODE_FORM}` });
    return z.NEVER;
  })
  .meta({ enum: [...PROXY_MODES] });

const clientConnection = z.strictObject({
  kubeconfig: text.optional().register(PRIVATE, { why: "the path of a file with credentials" }),
  acceptContentTypes: text.optional(),
  contentType: text.optional(),
  qps: decimal.optional(),
  burst: wholeNumber(0).optional(),
});

const outputRouting = z.strictObject({ splitStream: flag.optional(), infoBufferSize: quantity.optional() });

const logging = z.strictObject({
  format: oneOf(["text", "json"]).optional(),
  flushFrequency: durationOrNanoseconds.optional(),
  verbosity: wholeNumber(0).optional(),
  vmodule: z
    .array(
      z.strictObject({
        filePattern: text.refine((pattern) => pattern !== "" && !/[=,]/.test(pattern), {
          error: "must be a file name or pattern without = and ,",
        }),
        verbosity: wholeNumber(0).default(0),
      }),
      { error: "must be a list of {filePattern, verbosity}" },
    )
    .optional(),
  options: z.strictObject({ text: outputRouting.optional(), json: outputRouting.optional() }).optional(),
});

const iptables = z.strictObject({
  masqueradeBit: wholeNumber(0, 31).optional(),
  masqueradeAll: flag.optional(),
  localhostNodePorts: flag.optional(),
  syncPeriod: duration.optional(),
  minSyncPeriod: duration.optional(),
});

const ipvs = z.strictObject({
  syncPeriod: duration.optional(),
  minSyncPeriod: duration.optional(),
  scheduler: text.optional(),
  excludeCIDRs: list("CIDRs").optional(),
  strictARP: flag.optional(),
  tcpTimeout: duration.optional(),
  tcpFinTimeout: duration.optional(),
  udpTimeout: duration.optional(),
});

const nftables = z.strictObject({
  masqueradeBit: wholeNumber().optional(),
  masqueradeAll: flag.optional(),
  syncPeriod: duration.optional(),
  minSyncPeriod: duration.optional(),
});

const conntrack = z.strictObject({
  maxPerCore: wholeNumber(0).optional(),
  min: wholeNumber(0).optional(),
  tcpEstablishedTimeout: duration.optional(),
  tcpCloseWaitTimeout: duration.optional(),
  tcpBeLiberal: flag.optional(),
  udpTimeout: duration.optional(),
  udpStreamTimeout: duration.optional(),
});

const winkernel = z.strictObject({
  networkName: text.optional(),
  sourceVip: text.optional(),
  enableDSR: flag.optional(),
  rootHnsEndpointName: text.optional(),
  forwardHealthCheckVip: flag.optional(),
});

export const kubeProxySchema = z.strictObject({
  apiVersion: z.literal(API_VERSION).optional(),
  kind: z.literal(KIND).optional(),
  featureGates: z.record(z.string(), flag, { error: "must be a map of names to true or false" }).optional(),
  clientConnection: clientConnection.prefault({}),
  logging: logging.prefault({}),
  hostnameOverride: text.optional(),
  bindAddress: address.optional(),
  healthzBindAddress: socketAddress(HEALTHZ_PORT).optional(),
  metricsBindAddress: socketAddress(METRICS_PORT).optional(),
  bindAddressHardFail: flag.optional(),
  enableProfiling: flag.optional(),
  showHiddenMetricsForVersion: text
    .refine((version) => /^\d+\.\d+$/.test(version), { error: "must be <major>.<minor>, such as 1.36" })
    .optional(),
  mode: mode.optional(),
  iptables: iptables.prefault({}),
  ipvs: ipvs.prefault({}),
  nftables: nftables.prefault({}),
  winkernel: winkernel.prefault({}),
  detectLocalMode: oneOf(LOCAL_MODES, ", or empty for ClusterCIDR").optional(),
  detectLocal: z.strictObject({ bridgeInterface: text.optional(), interfaceNamePrefix: text.optional() }).prefault({}),
  clusterCIDR: z.string({ error: "must be text: CIDRs separated by commas" }).optional(),
  nodePortAddresses: list("CIDRs and the words primary, localhost, all").optional(),
  oomScoreAdj: wholeNumber(-1000, 1000).optional(),
  conntrack: conntrack.prefault({}),
  configSyncPeriod: duration.optional(),
  portRange: text.optional(),
  /** Of kube-proxy up to v1.25, when it had userspace mode. */
  udpIdleTimeout: duration.optional(),
  windowsRunAsService: flag.optional(),
});

/** What a KubeProxyConfiguration said, durations in milliseconds, nothing defaulted. */
export type KubeProxyInput = z.output<typeof kubeProxySchema>;
