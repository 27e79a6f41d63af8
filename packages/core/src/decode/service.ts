/** Reads a Service of the API. */

import {
  familyOf,
  fieldsOf,
  GATEWAY_GROUP,
  GATEWAY_ROUTES,
  isAbsent,
  isPort,
  itemsOf,
  parseCIDRLeniently,
  type RawObject,
  stringOf,
} from "@fairlead/base";
import { compact } from "../data.ts";
import type { Service, ServicePortSpec, TrafficPolicy } from "../objects.ts";
import { ProblemList } from "../problem.ts";
import { onlyLocal, TRAFFIC_POLICIES } from "../traffic-policy.ts";
import { ANNOTATION_PREFIX, OWN_ANNOTATIONS } from "./annotations.ts";
import {
  AMBIGUOUS,
  arrivesAsSent,
  checkNames,
  type Decoded,
  type Intern,
  isLabel,
  isSubdomain,
  keepAsIs,
  LOAD_BALANCER_IP_MODE,
  type Metadata,
  metadataOf,
  readAddress,
  readAddresses,
  readServicePorts,
  type SpecialAddress,
  UNUSABLE,
} from "./fields.ts";
import { noteService } from "./service-notices.ts";

interface ServiceDecoding {
  /** Annotations that are kept alongside Fairlead's own. Default: none. */
  readonly annotations?: ReadonlySet<string>;
  /** The value that the label service.kubernetes.io/service-proxy-name has to have. Default "": it has to be absent. */
  readonly serviceProxyName?: string;
}

/**
 * Reads a core/v1 Service. RawObject that the API server would have filled in get its defaults. Never throws: what is
 * wrong is in `problems`, and a bad port, address or range costs just itself.
 */
export function decodeService(
  raw: unknown,
  intern: Intern = keepAsIs,
  decoding: ServiceDecoding = {},
): Decoded<Service> {
  const metadata = metadataOf(raw);
  const { namespace, name } = metadata;
  const problems = new ProblemList("Service", namespace, name);
  const spec = fieldsOf(fieldsOf(raw)["spec"]);
  const ignored = reasonToIgnore(metadata, spec, decoding, problems);
  if (ignored !== undefined) return { namespace, name, ignored, ...problems.lists };
  const read = () => readService(metadata, fieldsOf(raw), intern, problems, decoding.annotations);
  const object = checkNames(metadata, problems) ? read() : undefined;
  if (object !== undefined) noteService(fieldsOf(raw), metadata.annotations, object, problems);
  const decoded = { namespace, name, ...problems.lists };
  return object === undefined ? decoded : { ...decoded, object };
}

/** Services with this label belong to the proxy of that name (KEP-2447). */
const PROXY_NAME_LABEL = "service.kubernetes.io/service-proxy-name";

/** There are ClusterIPs in 169.254.0.0/16; those of IPv6 would need a device alongside them. */
const REFUSED_CLUSTER_IPS: readonly SpecialAddress[] = [...UNUSABLE, "loopback", "IPv6 link-local"];
const REFUSED_EXTERNAL_IPS: readonly SpecialAddress[] = [...UNUSABLE, ...AMBIGUOUS];
/** core/v1 DefaultClientIPServiceAffinitySeconds, and the longest that the API allows. */
const DEFAULT_AFFINITY_SECONDS = 10_800;
const LONGEST_AFFINITY_SECONDS = 86_400;

function reasonToIgnore(
  metadata: Metadata,
  spec: RawObject,
  { serviceProxyName = "" }: ServiceDecoding,
  problems: ProblemList,
): string | undefined {
  const others = ofAnotherProxy(metadata, serviceProxyName);
  if (others !== undefined) return others;
  const type = spec["type"];
  if (type === "ExternalName") return "type ExternalName has nothing to proxy";
  const clusterIP = spec["clusterIP"];
  const noClusterIP = isAbsent(clusterIP) || clusterIP === "";
  if (noClusterIP && itemsOf(spec["clusterIPs"]).length === 0) return "has no ClusterIP";
  if (clusterIP !== "None" && !(noClusterIP && itemsOf(spec["clusterIPs"])[0] === "None")) return undefined;
  if (type === "NodePort" || type === "LoadBalancer") {
    problems.add("spec.clusterIP", "None", `must be an address for type ${type}`);
  }
  return "headless (clusterIP None)";
}

function ofAnotherProxy({ labels }: Metadata, own: string): string | undefined {
  const label = labels[PROXY_NAME_LABEL];
  if (label === (own === "" ? undefined : own)) return undefined;
  if (label === undefined) return `has no label ${PROXY_NAME_LABEL}: left to the node's default proxy`;
  return `left to service proxy ${stringOf(label) || '""'} (label ${PROXY_NAME_LABEL})`;
}

function readService(
  metadata: Metadata,
  raw: RawObject,
  intern: Intern,
  problems: ProblemList,
  annotations?: ReadonlySet<string>,
): Service | undefined {
  const spec = fieldsOf(raw["spec"]);
  const clusterIPs = readClusterIPs(spec, problems);
  const ports = readServicePorts(spec, intern, problems);
  if (clusterIPs.length === 0 || ports.length === 0) return undefined;
  const gateway = owningGateway(raw);
  const externalIPs = readAddresses("spec.externalIPs", itemsOf(spec["externalIPs"]), REFUSED_EXTERNAL_IPS, problems);
  const external = isExternal(spec, externalIPs);
  const externalTrafficPolicy = external ? readPolicy("externalTrafficPolicy", spec, problems) : "Cluster";
  return {
    namespace: intern(metadata.namespace),
    name: metadata.name,
    clusterIPs,
    ports: gateway === undefined ? ports : withRoutes(ports, metadata.annotations[GATEWAY_ROUTES]),
    externalIPs,
    ...readIngressAddresses(raw, metadata.annotations, problems),
    ...readSourceRanges(spec, problems),
    internalTrafficPolicy: readPolicy("internalTrafficPolicy", spec, problems),
    externalTrafficPolicy,
    annotations: readAnnotations(metadata.annotations, annotations),
    ...readCreation(metadata),
    ...(isClusterDNS(metadata) ? { clusterDNS: true as const } : undefined),
    ...(gateway === undefined ? undefined : { gateway: `${metadata.namespace}/${gateway}` }),
    ...readAffinity(spec, problems),
    ...readDistribution(spec, intern),
    ...(onlyLocal(externalTrafficPolicy) ? readHealthCheckPort(spec, problems) : undefined),
  };
}

/** The API server writes it: one that cannot be read is not worth a line. */
function readCreation({ creationTimestamp }: Metadata): Pick<Service, "created"> {
  const created = Date.parse(stringOf(creationTimestamp) ?? "");
  return Number.isNaN(created) ? {} : { created };
}

/**
 * The name of the Gateway that owns an object; undefined: none does. The label `gateway.networking.k8s.io/gateway-name`
 * (GEP-1762) says nothing here: it cannot hold every name, and is there without an owner as well.
 */
export function owningGateway(raw: unknown): string | undefined {
  return itemsOf(fieldsOf(fieldsOf(raw)["metadata"])["ownerReferences"])
    .map(fieldsOf)
    .filter(({ kind, apiVersion }) => kind === "Gateway" && stringOf(apiVersion)?.split("/")[0] === GATEWAY_GROUP)
    .map(({ name }) => stringOf(name))
    .find((name) => name !== undefined && isSubdomain(name));
}

/** What of the annotation is no name of a route is passed over: its controller writes it anew. */
function withRoutes(ports: readonly ServicePortSpec[], value: unknown): readonly ServicePortSpec[] {
  const entries = (stringOf(value) ?? "").split(",");
  const routes = new Map(entries.map((entry) => [entry.slice(0, entry.indexOf("=")), entry]));
  return ports.map((port) => {
    const route = routes.get(port.name)?.slice(port.name.length + 1);
    const [namespace = "", name = "", ...more] = route?.split("/") ?? [];
    const isName = isLabel(namespace) && isSubdomain(name) && more.length === 0;
    return isName ? { ...port, route: `${port.protocol}Route ${namespace}/${name}` } : port;
  });
}

/** A label elsewhere says nothing: anybody may set it in a namespace of theirs. */
function isClusterDNS({ namespace, labels }: Metadata): boolean {
  return namespace === "kube-system" && labels["k8s-app"] === "kube-dns";
}

/** One ClusterIP a family, the first one of each. */
function readClusterIPs(spec: RawObject, problems: ProblemList): readonly string[] {
  const listed = itemsOf(spec["clusterIPs"]);
  if (listed.length === 0) {
    const only = readAddress("spec.clusterIP", spec["clusterIP"], REFUSED_CLUSTER_IPS, problems);
    return only === undefined ? [] : [only.text];
  }
  const found = readAddresses("spec.clusterIPs", listed, REFUSED_CLUSTER_IPS, problems);
  const first = found.filter((ip) => found.find((other) => familyOf(other) === familyOf(ip)) === ip);
  for (const ip of found) {
    if (!first.includes(ip))
      problems.add("spec.clusterIPs", ip, "is the second ClusterIP of its family; only the first is served");
  }
  return compact(first);
}

/** Whether externalTrafficPolicy means anything (upstream: ExternallyAccessible). */
function isExternal(spec: RawObject, externalIPs: readonly string[]): boolean {
  return spec["type"] === "NodePort" || spec["type"] === "LoadBalancer" || externalIPs.length > 0;
}

function readPolicy(name: string, spec: RawObject, problems: ProblemList): TrafficPolicy {
  const value = spec[name];
  const policy = TRAFFIC_POLICIES.find((one) => one === value);
  if (policy !== undefined) return policy;
  if (!isAbsent(value) && value !== "") {
    problems.add(`spec.${name}`, value, `must be ${TRAFFIC_POLICIES.join(" or ")}; using Cluster`);
  }
  return "Cluster";
}

function readAffinity(spec: RawObject, problems: ProblemList): { affinitySeconds?: number } {
  const value = spec["sessionAffinity"];
  if (isAbsent(value) || value === "" || value === "None") return {};
  if (value !== "ClientIP") {
    problems.add("spec.sessionAffinity", value, "must be None or ClientIP; using None");
    return {};
  }
  const seconds = fieldsOf(fieldsOf(spec["sessionAffinityConfig"])["clientIP"])["timeoutSeconds"];
  if (isAbsent(seconds)) return { affinitySeconds: DEFAULT_AFFINITY_SECONDS };
  const usable = Number.isInteger(seconds) && typeof seconds === "number" && seconds >= 1;
  if (usable && seconds <= LONGEST_AFFINITY_SECONDS) return { affinitySeconds: seconds };
  const field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
  problems.add(field, seconds, `must be 1 to ${LONGEST_AFFINITY_SECONDS}; using ${DEFAULT_AFFINITY_SECONDS}`);
  return { affinitySeconds: DEFAULT_AFFINITY_SECONDS };
}

/** It takes effect by the hints that the EndpointSlice controller derives from it. */
function readDistribution(spec: RawObject, intern: Intern): Pick<Service, "trafficDistribution"> {
  const value = stringOf(spec["trafficDistribution"]);
  return value === undefined || value === "" ? {} : { trafficDistribution: intern(value) };
}

/** Only type LoadBalancer has one; 0 is how the API says none. */
function readHealthCheckPort(spec: RawObject, problems: ProblemList): { healthCheckNodePort?: number } {
  const value = spec["healthCheckNodePort"];
  if (spec["type"] !== "LoadBalancer" || isAbsent(value) || value === 0) return {};
  if (isPort(value)) return { healthCheckNodePort: value };
  problems.add("spec.healthCheckNodePort", value, "must be a number from 1 to 65535");
  return {};
}

const NO_ANNOTATIONS: Readonly<Record<string, string>> = {};

function readAnnotations(annotations: RawObject, wanted?: ReadonlySet<string>): Readonly<Record<string, string>> {
  const kept = Object.entries(annotations).flatMap(([key, value]): [string, string][] => {
    const text = stringOf(value);
    const isOwn = key.startsWith(ANNOTATION_PREFIX) && !OWN_ANNOTATIONS.GatewayService.includes(key);
    const keep = isOwn || wanted?.has(key) === true;
    return keep && text !== undefined ? [[key, text]] : [];
  });
  return kept.length === 0 ? NO_ANNOTATIONS : Object.fromEntries(kept);
}

/**
 * status.loadBalancer.ingress addresses whose traffic comes here with the address still on it.
 * Loopback and link-local ones are left to the controllers that hand them out: no other program may write the status.
 */
function readIngressAddresses(
  raw: RawObject,
  annotations: RawObject,
  problems: ProblemList,
): Pick<Service, "loadBalancerIPs" | "leftLoadBalancerIPs"> {
  const ingress = itemsOf(fieldsOf(fieldsOf(raw["status"])["loadBalancer"])["ingress"]);
  const found = new Set<string>();
  ingress.forEach((item, i) => {
    const { ip, ipMode } = fieldsOf(item);
    if (!arrivesAsSent(ipMode)) return;
    const address = readAddress(`status.loadBalancer.ingress[${i}].ip`, ip, UNUSABLE, problems);
    if (address !== undefined) found.add(address.text);
  });
  const addresses = compact([...found]);
  const areLeft = annotations[LOAD_BALANCER_IP_MODE] === "Proxy" && addresses.length > 0;
  return areLeft ? { loadBalancerIPs: compact([]), leftLoadBalancerIPs: addresses } : { loadBalancerIPs: addresses };
}

/**
 * spec.loadBalancerSourceRanges, trimmed of the white space that the API lets pass. A range of length 0 admits every
 * client of its family, so it replaces that family's ranges. If none can be read, no client is admitted: the API
 * refuses such a Service, and one that comes by another way was not meant to be open.
 */
function readSourceRanges(
  spec: RawObject,
  problems: ProblemList,
): Pick<Service, "loadBalancerSourceRanges" | "unreadableSourceRanges"> {
  let unreadable = 0;
  const ranges = itemsOf(spec["loadBalancerSourceRanges"]).flatMap((value, i) => {
    const text = typeof value === "string" ? value.trim() : undefined;
    if (text === "") return [];
    const cidr = text === undefined ? undefined : parseCIDRLeniently(text);
    if (cidr !== undefined) return [cidr];
    unreadable += 1;
    problems.add(`spec.loadBalancerSourceRanges[${i}]`, value, "must be a CIDR, as 192.0.2.0/24");
    return [];
  });
  const open = new Set(ranges.filter((range) => range.prefixLength === 0).map((range) => range.family));
  const closed = ranges.filter((range) => !open.has(range.family)).map((range) => range.text);
  const loadBalancerSourceRanges = compact([...new Set(closed)]);
  if (ranges.length > 0 || unreadable === 0) return { loadBalancerSourceRanges };
  return { loadBalancerSourceRanges, unreadableSourceRanges: true };
}
