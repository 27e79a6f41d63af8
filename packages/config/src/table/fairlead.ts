/** FairleadConfiguration, fairlead.dev/v1alpha1: a second document in the file of --config, with its flags. */
import * as z from "zod";
import { CIDR_SOURCES } from "../cidr-source-names.ts";
import { MARK_RANGES } from "../used-numbers.ts";
import { block, field } from "./row.ts";
import { duration, flag, flagTypes, list, oneOf, text, wholeNumber } from "./scalars.ts";

export const API_VERSION = "fairlead.dev/v1alpha1";
export const KIND = "FairleadConfiguration";

const SOURCE_FORM = `must be one of ${CIDR_SOURCES.join(", ")}, or {source: custom, resource: plural.version.group, fields: [spec.cidr]}, with within: [CIDR] to believe it in these CIDRs only`;

const byName = z.enum(CIDR_SOURCES).transform((source) => ({ source }));
const common = { within: list("CIDRs").optional(), namespace: text.optional(), name: text.optional() };
const withSettings = z.strictObject({ source: z.enum(CIDR_SOURCES), vpcs: list("VPCs").optional(), ...common });
const custom = z.strictObject({ source: z.literal("custom"), resource: text, fields: list("fields"), ...common });

/** Names, or blocks with `source` and what it needs. */
const cidrSources = z
  .array(z.union([byName, withSettings, custom], { error: SOURCE_FORM }), { error: "must be a list of sources" })
  .readonly();

const RULE_FORM =
  "must be {annotation: NAME, ownership: foreign} or {namespaceLabel: NAME, ownership: foreign}, with in: [VALUE], notIn: [VALUE] or notIn: [{defaultVPC: true}] to match only some values; ownership is ours or foreign, excludedFrontends all (the default), cluster-ip or excluded-clients";

/** A value, or the name that kube-ovn's default VPC has. */
const ruleValue = z.union([text, z.strictObject({ defaultVPC: z.literal(true) })], {
  error: "must be a value, or {defaultVPC: true}",
});

const outcome = {
  in: list("values").optional(),
  notIn: z.array(ruleValue, { error: "must be a list of values" }).readonly().optional(),
  ownership: z.enum(["ours", "foreign"]),
  excludedFrontends: z.enum(["all", "cluster-ip", "excluded-clients"]).optional(),
};

const qualifiedName = text.regex(/^(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9](?:[-\w.]*[A-Za-z0-9])?$/, {
  error: "must be a name, such as ovn.kubernetes.io/vpc",
});

/** Rules that say which network owns a Service. */
const serviceRules = z
  .array(
    z.union(
      [
        z.strictObject({ annotation: qualifiedName, ...outcome }),
        z.strictObject({ namespaceLabel: qualifiedName, ...outcome }),
      ],
      { error: RULE_FORM },
    ),
    { error: "must be a list of rules" },
  )
  .readonly();

const uplink = z.strictObject({ interface: text, table: wholeNumber(1, 2 ** 32 - 1).optional() });
const uplinks = z.union([z.literal("auto"), z.array(uplink).readonly()], {
  error: "must be auto, or a list of {interface: NAME} or {interface: NAME, table: NUMBER}",
});
const unusedMarks = z.array(oneOf(Object.keys(MARK_RANGES)), { error: "must be a list of names" }).readonly();

const fastPathDevices = z.union([z.literal("auto"), z.array(text).readonly()], {
  error: "must be auto, or a list of device names, such as cali*",
});

export const fairleadSchema = z.strictObject({
  apiVersion: z.literal(API_VERSION).optional(),
  kind: z.literal(KIND).optional(),
  serviceProxyName: field(text, {
    flag: "service-proxy-name",
    group: "networks",
    help: "Serve only services whose label service.kubernetes.io/service-proxy-name has this value, alongside the node's default proxy. Needs nftables mode or --userspace-only.",
    meaning: "only services with this name in their label, alongside another proxy",
  }),
  serviceNetwork: field(flag, {
    flag: "service-network",
    group: "networks",
    help: "Use only EndpointSlices that fairlead-controller writes, which lead to pods' secondary networks. Needs --service-proxy-name and nftables mode.",
    meaning: "only endpoints on pods' secondary networks ([page](secondary-networks.md))",
  }),
  multiCNI: block("networks", {
    excludeClusterCIDRs: field(list("CIDRs"), {
      flag: "exclude-cluster-cidr",
      help: "Pod CIDRs whose services another network serves, IPv4 and IPv6; repeatable or comma separated.",
      meaning: "pod networks that serve their own services ([multi-cni.md](multi-cni.md))",
    }),
    excludeCIDRsFrom: field(cidrSources, {
      flag: "exclude-cidrs-from",
      type: flagTypes.strings,
      help: "Sources of other networks' pod CIDRs, such as kube-ovn-subnets; repeatable or comma separated.",
      meaning: "objects of other networks that have their CIDRs",
    }),
    clusterCIDRsFrom: field(cidrSources, {
      flag: "cluster-cidr-from",
      type: flagTypes.strings,
      help: "Sources of this proxy's own pod CIDRs, such as calico-ippools, in addition to --cluster-cidr.",
      meaning: "objects of our own network that have its CIDRs",
    }),
    cidrChanges: block("networks", {
      debounce: field(duration, { meaning: "how long changes of learned CIDRs are gathered" }),
      removalDelay: field(duration, {
        flag: "cidr-removal-delay",
        default: "10m0s",
        help: "How long a learned CIDR stays in effect after the last object that defines it is gone.",
        meaning: "how long a learned CIDR stays after its last object is gone",
      }),
      maxForeignPercent: field(wholeNumber(0, 100), { meaning: "the share of foreign services that raises an alarm" }),
    }),
    mixedServices: field(oneOf(["own-endpoints", "skip", "all"]), {
      flag: "mixed-services",
      default: "own-endpoints",
      help: "What to do with services that have endpoints both inside and outside the excluded CIDRs: own-endpoints (use the endpoints outside), skip (do not serve the service) or all (use every endpoint).",
      meaning: "services with endpoints on both sides",
    }),
    excludedFrontends: field(oneOf(["all", "cluster-ip", "excluded-clients"]), {
      flag: "excluded-frontends",
      default: "all",
      help: "Which frontends of an excluded service are left to the other network: all, only the ClusterIP (cluster-ip), or the ClusterIP for clients in the excluded CIDRs only (excluded-clients). Fairlead proxies the rest.",
      meaning: "which frontends of an excluded service are skipped",
    }),
    masqueradeToExcluded: field(flag, {
      flag: "masquerade-to-excluded",
      default: "with --excluded-frontends=excluded-clients",
      help: "Masquerade this network's pods on the way to endpoints of an excluded service outside the cluster CIDR, so that the answers return through the node.",
      meaning: "whether our pods are masqueraded to another network's endpoints",
    }),
    ownershipAnnotation: field(flag, {
      flag: "ownership-annotation",
      default: "true",
      help: "Let the annotation fairlead.dev/ownership of a Service override the CIDRs.",
      meaning: "whether a Service may name its owner",
    }),
    serviceRules: field(serviceRules, {
      meaning: "annotations and labels of namespaces that decide which network owns a Service",
    }),
    protectedServices: field(list("services"), { meaning: "Services that are always answered, next to DNS" }),
    consentNamespace: field(text, { meaning: "where the ConfigMap `fairlead-networks` is" }),
  }),
  resetStaleTCP: field(flag, {
    flag: "reset-stale-tcp",
    group: "tracking",
    help: "Reset TCP connections to removed endpoints when the client next sends. Not in userspace mode.",
    meaning: "reset TCP connections of endpoints that are gone",
  }),
  replyVia: field(uplinks, { meaning: "by which interfaces answers leave ([reply-via.md](reply-via.md))" }),
  replyRouting: block("node", {
    markMask: field(wholeNumber(1, 2 ** 32 - 1), { meaning: "bits of marks that this takes" }),
    rulePriority: field(wholeNumber(1, 32_765), { meaning: "priority of the routing rules" }),
    firstTable: field(wholeNumber(256, 2 ** 32 - 256), { meaning: "first of the routing tables" }),
    unusedMarks: field(unusedMarks, { meaning: "programs whose bits of marks are free" }),
  }),
  serviceMetrics: block("served", {
    namespaces: field(list("namespaces"), {
      flag: "service-metrics",
      help: "Namespaces of the Services whose connections are exported as metrics; * for all.",
      meaning: "namespaces whose Services have metrics of their connections",
    }),
    // Their text is made in one go: 10,000 take some tens of milliseconds.
    maxSeries: field(wholeNumber(1, 10_000), {
      flag: "service-metrics-max-series",
      default: "2000",
      help: "Maximum number of these series. Services beyond the limit are not exported.",
      meaning: "how many series these may have",
    }),
  }),
  nftables: block("mode", {
    fastPath: z
      .strictObject({
        devices: field(fastPathDevices, { meaning: "devices of the fast path ([fast-path.md](fast-path.md))" }),
      })
      .optional(),
  }),
  ipvs: block("mode", {
    fallback: field(flag, {
      flag: "ipvs-fallback",
      default: "true",
      help: "Fall back to iptables mode on kernels without IPVS. If false, exit, as kube-proxy does.",
      meaning: "iptables mode where the kernel has no IPVS",
    }),
  }),
  userspace: block("userspace", {
    tcpIdleTimeout: field(duration, {
      flag: "userspace-tcp-idle-timeout",
      default: "24h0m0s",
      help: "Idle timeout of relayed TCP connections. 0 means no timeout.",
      meaning: "how long userspace mode keeps a TCP connection without a byte",
    }),
    maxSockets: field(wholeNumber(3), {
      flag: "userspace-max-sockets",
      default: "32000",
      help: "Maximum number of open sockets of relays. A TCP connection takes two.",
      meaning: "how many sockets userspace mode may have open",
    }),
    maxSocketsPerService: field(wholeNumber(2), {
      flag: "userspace-max-sockets-per-service",
      default: "16000",
      help: "Maximum number of open sockets per service port.",
      meaning: "the same for one service port",
    }),
  }),
});

/** What a FairleadConfiguration said, durations in milliseconds, nothing defaulted. */
export type FairleadInput = z.output<typeof fairleadSchema>;
