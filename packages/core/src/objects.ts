/**
 * The parts of the Kubernetes objects that the service model reads. Lists hold tens of thousands of these, so what the
 * model does not need is dropped when an object is decoded, and absent optional fields stay absent.
 */

import type { IPFamily, Protocol } from "@fairlead/base";

export type { IPFamily, Protocol };

export type TrafficPolicy = "Cluster" | "Local";

/** `namespace/name`, the key of a Service everywhere in Fairlead. Built by `serviceKey`. */
export type ServiceKey = `${string}/${string}`;

export interface ServicePortSpec {
  /** "" where the Service has one unnamed port. */
  readonly name: string;
  readonly protocol: Protocol;
  /** 1…65535 */
  readonly port: number;
  /** 1…65535, absent where the port has none. */
  readonly nodePort?: number;
}

/** A decoded core/v1 Service that has a ClusterIP (headless and ExternalName ones never become one of these). */
export interface Service {
  readonly namespace: string;
  readonly name: string;
  /** Canonical addresses, the primary one first; one or two families. */
  readonly clusterIPs: readonly string[];
  readonly ports: readonly ServicePortSpec[];
  /** Canonical addresses of both families, without duplicates. */
  readonly externalIPs: readonly string[];
  /** status.loadBalancer.ingress IPs whose ipMode is VIP; canonical. */
  readonly loadBalancerIPs: readonly string[];
  /** Canonical CIDRs of both families, spec.loadBalancerSourceRanges. */
  readonly loadBalancerSourceRanges: readonly string[];
  readonly internalTrafficPolicy: TrafficPolicy;
  /** "Cluster" for Services without external frontends' policy. */
  readonly externalTrafficPolicy: TrafficPolicy;
  /** Seconds of ClientIP affinity; absent: none. */
  readonly affinitySeconds?: number;
  /** 1…65535; only for type LoadBalancer with externalTrafficPolicy Local. */
  readonly healthCheckNodePort?: number;
  /** spec.trafficDistribution, as it is written; absent: none. It decides nothing: only explanations name it. */
  readonly trafficDistribution?: string;
  /** metadata.creationTimestamp, milliseconds since the epoch; absent: unknown, as in manifests. */
  readonly created?: number;
  /** It is the cluster's DNS: namespace kube-system, label k8s-app: kube-dns. */
  readonly clusterDNS?: true;
  /** Annotations with the prefix `fairlead.dev/` only. */
  readonly annotations: Readonly<Record<string, string>>;
}

export interface SlicePort {
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: number;
}

export interface SliceEndpoint {
  /** The first of the endpoint's addresses (KEP-752: consumers use the first), canonical. */
  readonly address: string;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  readonly nodeName?: string;
  /** hints.forZones / hints.forNodes names; absent where the endpoint has none. */
  readonly zoneHints?: readonly string[];
  readonly nodeHints?: readonly string[];
}

/** A decoded discovery.k8s.io/v1 EndpointSlice of addressType IPv4 or IPv6. */
export interface EndpointSlice {
  readonly namespace: string;
  readonly name: string;
  /** Label kubernetes.io/service-name. */
  readonly serviceName: string;
  readonly family: IPFamily;
  readonly ports: readonly SlicePort[];
  readonly endpoints: readonly SliceEndpoint[];
  /** Annotation endpoints.kubernetes.io/last-change-trigger-time, milliseconds since the epoch. */
  readonly triggerTime?: number;
}

/** The own Node, as far as planning and health need it. */
export interface NodeState {
  readonly name: string;
  /** Label topology.kubernetes.io/zone. */
  readonly zone?: string;
  /** Canonical InternalIP (then ExternalIP) addresses in the order of status.addresses. */
  readonly addresses: readonly string[];
  readonly podCIDRs: readonly string[];
  /** metadata.deletionTimestamp is set, or the taint ToBeDeletedByClusterAutoscaler is there. */
  readonly goingAway: boolean;
}

/** A networking.k8s.io/v1 ServiceCIDR. */
export interface ServiceCIDR {
  readonly name: string;
  /** Canonical CIDRs of both families. */
  readonly cidrs: readonly string[];
}

/** Joined, so that the string is flat: a template would keep its parts alongside it. */
export function serviceKey(namespace: string, name: string): ServiceKey {
  return [namespace, name].join("/") as ServiceKey;
}

/** What `serviceKey` joins; keys of other objects are of the same kind, without a namespace where they have none. */
export function splitKey(key: `${string}/${string}`): { readonly namespace: string; readonly name: string } {
  const slash = key.indexOf("/");
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
