/**
 * The parts of the Kubernetes objects that the service model reads. Lists hold tens of thousands of these, so what the
 * model does not need is dropped when an object is decoded, and absent optional fields stay absent.
 */

import type { IPFamily, Protocol } from "@fairlead/base";

export type { IPFamily, Protocol };

/** A traffic policy of a Service, as Kubernetes spells it. */
export type TrafficPolicy = "Cluster" | "Local";

/** `namespace/name`, the key of a Service everywhere in Fairlead. Built by `serviceKey`. */
export type ServiceKey = `${string}/${string}`;

/** A port of a decoded Service. */
export interface ServicePortSpec {
  /** "" where the Service has one unnamed port. */
  readonly name: string;
  /** TCP where the Service says nothing. */
  readonly protocol: Protocol;
  /** 1…65535 */
  readonly port: number;
  /** 1…65535, absent where the port has none. */
  readonly nodePort?: number;
  /** `TCPRoute NAMESPACE/NAME`: the route that serves a port of a Gateway; absent: none. As `Service.gateway`. */
  readonly route?: string;
}

/** A decoded core/v1 Service that has a ClusterIP (headless and ExternalName ones never become one of these). */
export interface Service {
  /** metadata.namespace. */
  readonly namespace: string;
  /** metadata.name. */
  readonly name: string;
  /** Canonical addresses, the primary one first; one or two families. */
  readonly clusterIPs: readonly string[];
  /** In the order of spec.ports. */
  readonly ports: readonly ServicePortSpec[];
  /** Canonical addresses of both families, without duplicates. */
  readonly externalIPs: readonly string[];
  /** status.loadBalancer.ingress IPs whose ipMode is VIP; canonical. */
  readonly loadBalancerIPs: readonly string[];
  /** Those that the annotation fairlead.dev/load-balancer-ip-mode leaves to the load balancer; absent: none. */
  readonly leftLoadBalancerIPs?: readonly string[];
  /** Canonical CIDRs of both families, spec.loadBalancerSourceRanges. */
  readonly loadBalancerSourceRanges: readonly string[];
  /** It has source ranges, and none of them can be read: its load-balancer addresses let no client in. */
  readonly unreadableSourceRanges?: true;
  /** spec.internalTrafficPolicy; "Cluster" where it is absent. */
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
  /** The Gateway that owns it, `namespace/name`. It decides nothing: only explanations name it. */
  readonly gateway?: string;
  /** Annotations with the prefix `fairlead.dev/` only. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** A port of a decoded EndpointSlice. Slices name the ports of the pods, which may differ from slice to slice. */
export interface SlicePort {
  /** The name of the Service's port; "" where that has none. */
  readonly name: string;
  /** TCP where the slice says nothing. */
  readonly protocol: Protocol;
  /** The pods' port, 1…65535. */
  readonly port: number;
}

/** An endpoint of a decoded EndpointSlice. */
export interface SliceEndpoint {
  /** The first of the endpoint's addresses (KEP-752: consumers use the first), canonical. */
  readonly address: string;
  /** conditions.ready; true where it is absent. */
  readonly ready: boolean;
  /** conditions.serving; true where it is absent. */
  readonly serving: boolean;
  /** conditions.terminating; false where it is absent. */
  readonly terminating: boolean;
  /** The node that it runs on; absent where the slice does not say. */
  readonly nodeName?: string;
  /** hints.forZones / hints.forNodes names; absent where the endpoint has none. */
  readonly zoneHints?: readonly string[];
  /** The names of hints.forNodes, in the same way. */
  readonly nodeHints?: readonly string[];
}

/** A decoded discovery.k8s.io/v1 EndpointSlice of addressType IPv4 or IPv6. */
export interface EndpointSlice {
  /** metadata.namespace, which is the Service's. */
  readonly namespace: string;
  /** metadata.name. */
  readonly name: string;
  /** Label kubernetes.io/service-name. */
  readonly serviceName: string;
  /** addressType. */
  readonly family: IPFamily;
  /** Ports without a number are left out. */
  readonly ports: readonly SlicePort[];
  /** In the order of the slice. */
  readonly endpoints: readonly SliceEndpoint[];
  /** Annotation fairlead.dev/weight, 0…1,000,000: the slice's share. Absent: each of its endpoints weighs 1. */
  readonly weight?: number;
  /** Annotation fairlead.dev/weight-refused: it has no endpoints, and its share is refused. */
  readonly refused?: true;
  /** Annotation endpoints.kubernetes.io/last-change-trigger-time, milliseconds since the epoch. */
  readonly triggerTime?: number;
}

/** The own Node, as far as planning and health need it. */
export interface NodeState {
  /** metadata.name. */
  readonly name: string;
  /** Label topology.kubernetes.io/zone. */
  readonly zone?: string;
  /** Canonical InternalIP (then ExternalIP) addresses in the order of status.addresses. */
  readonly addresses: readonly string[];
  /** spec.podCIDRs, canonical. */
  readonly podCIDRs: readonly string[];
  /** metadata.deletionTimestamp is set, or the taint ToBeDeletedByClusterAutoscaler is there. */
  readonly goingAway: boolean;
}

/** A networking.k8s.io/v1 ServiceCIDR. */
export interface ServiceCIDR {
  /** metadata.name. */
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
