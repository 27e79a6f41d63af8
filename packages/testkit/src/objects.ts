/** Builders of Kubernetes objects. */

import { familyOf } from "@fairlead/base";
import type { IPFamily, Protocol, TrafficPolicy } from "@fairlead/core";

/** An object as the API server sends it; the builders make these so that decoding is a part of what is tested. */
export interface RawObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: RawMetadata;
  readonly [field: string]: unknown;
}

export interface RawMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

export interface ServicePortFields {
  /** Default "". */
  readonly name?: string;
  readonly port: number;
  readonly targetPort?: number;
  readonly nodePort?: number;
  /** Default TCP. */
  readonly protocol?: Protocol;
}

export interface ServiceFields {
  /** Default "default". */
  readonly namespace?: string;
  readonly type?: "ClusterIP" | "NodePort" | "LoadBalancer";
  /** The primary one first. */
  readonly clusterIPs: readonly string[];
  readonly ports: readonly ServicePortFields[];
  readonly externalIPs?: readonly string[];
  readonly ingress?: readonly { readonly ip: string; readonly ipMode?: "VIP" | "Proxy" }[];
  readonly sourceRanges?: readonly string[];
  readonly internalTrafficPolicy?: TrafficPolicy;
  readonly externalTrafficPolicy?: TrafficPolicy;
  readonly affinitySeconds?: number;
  readonly healthCheckNodePort?: number;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  /** The name of the Gateway that owns it; absent: none. */
  readonly gateway?: string;
}

/** A core/v1 Service as the API server stores it, its defaults filled in. */
export function service(name: string, fields: ServiceFields): RawObject {
  const { namespace = "default", labels = {}, annotations = {}, gateway } = fields;
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      ...{ name, namespace, labels, annotations },
      ...(gateway !== undefined && { ownerReferences: [gatewayReference(gateway)] }),
    },
    spec: serviceSpec(fields),
    status: { loadBalancer: fields.ingress === undefined ? {} : { ingress: fields.ingress.map(ingress) } },
  };
}

/** As the controller of Gateways writes it. */
export function gatewayReference(name: string): object {
  const apiVersion = "gateway.networking.k8s.io/v1";
  return { apiVersion, kind: "Gateway", name, uid: `uid-${name.slice(0, 20)}`, controller: true };
}

export interface EndpointFields {
  readonly address: string;
  readonly nodeName?: string;
  /** Default true. */
  readonly ready?: boolean;
  /** Default: as ready. */
  readonly serving?: boolean;
  /** Default false. */
  readonly terminating?: boolean;
  readonly zoneHints?: readonly string[];
  readonly nodeHints?: readonly string[];
}

export interface SlicePortFields {
  /** Default "". */
  readonly name?: string;
  readonly port: number;
  /** Default TCP. */
  readonly protocol?: Protocol;
}

export interface EndpointSliceFields {
  /** Default "default". */
  readonly namespace?: string;
  readonly service: string;
  readonly family: IPFamily;
  readonly ports: readonly SlicePortFields[];
  readonly endpoints: readonly EndpointFields[];
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A discovery.k8s.io/v1 EndpointSlice as the API server stores it. */
export function endpointSlice(name: string, fields: EndpointSliceFields): RawObject {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name,
      namespace: fields.namespace ?? "default",
      labels: { "kubernetes.io/service-name": fields.service },
      ...(fields.annotations && { annotations: fields.annotations }),
    },
    addressType: fields.family,
    ports: fields.ports.map(({ name = "", port, protocol = "TCP" }) => ({ name, port, protocol })),
    endpoints: fields.endpoints.map(endpoint),
  };
}

export interface NodeFields {
  readonly zone?: string;
  /** Addresses of type InternalIP, in order. */
  readonly addresses: readonly string[];
  readonly podCIDRs?: readonly string[];
  readonly taints?: readonly { readonly key: string; readonly effect: string }[];
}

/** A core/v1 Node with what a service proxy reads of it. */
export function node(name: string, fields: NodeFields): RawObject {
  const labels = { "kubernetes.io/hostname": name };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: fields.zone === undefined ? labels : { ...labels, "topology.kubernetes.io/zone": fields.zone },
    },
    spec: {
      ...(fields.podCIDRs && { podCIDR: fields.podCIDRs[0], podCIDRs: fields.podCIDRs }),
      ...(fields.taints && { taints: fields.taints }),
    },
    status: {
      addresses: [
        ...fields.addresses.map((address) => ({ type: "InternalIP", address })),
        { type: "Hostname", address: name },
      ],
    },
  };
}

/** A networking.k8s.io/v1 ServiceCIDR. */
export function serviceCIDR(name: string, cidrs: readonly string[]): RawObject {
  return { apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", metadata: { name }, spec: { cidrs } };
}

/** default/kubernetes as the API server makes it: 10.96.0.1:443 → 192.0.2.2:6443. */
export function kubernetesService(): readonly RawObject[] {
  const metadata = { name: "kubernetes", namespace: "default" };
  return [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: {
        type: "ClusterIP",
        clusterIP: "10.96.0.1",
        clusterIPs: ["10.96.0.1"],
        ipFamilies: ["IPv4"],
        ports: [{ name: "https", port: 443, protocol: "TCP", targetPort: 6443 }],
        internalTrafficPolicy: "Cluster",
        sessionAffinity: "None",
      },
    },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { ...metadata, labels: { "kubernetes.io/service-name": "kubernetes" } },
      addressType: "IPv4",
      ports: [{ name: "https", port: 6443, protocol: "TCP" }],
      endpoints: [{ addresses: ["192.0.2.2"], conditions: { ready: true } }],
    },
  ];
}

const NAMESPACE = "nad-l3";
const POD = { kind: "Pod", name: "sample-deployment-6b64bd4868-7ftt6", namespace: NAMESPACE };
const CONDITIONS = { ready: true, serving: true, terminating: false };

const slice = (name: string, address: string, metadata: object): RawObject => ({
  apiVersion: "discovery.k8s.io/v1",
  kind: "EndpointSlice",
  metadata: { name, namespace: NAMESPACE, ...metadata },
  addressType: "IPv4",
  endpoints: [{ addresses: [address], conditions: CONDITIONS, nodeName: "ovn-worker", targetRef: POD }],
  ports: [{ name: "", port: 80, protocol: "TCP" }],
});

/**
 * A Service of a namespace with a primary user-defined network, as OVN-Kubernetes' documentation shows its
 * EndpointSlices: docs/features/user-defined-networks/user-defined-networks.md (Apache-2.0), with the namespace's label
 * and the Service.
 */
export const userDefinedNetwork = {
  namespace: {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: NAMESPACE, labels: { "k8s.ovn.org/primary-user-defined-network": "" } },
  },
  service: service("sample-deployment", {
    namespace: NAMESPACE,
    clusterIPs: ["10.96.207.175"],
    ports: [{ port: 80, nodePort: 31_372 }],
    type: "NodePort",
  }),
  /** By Kubernetes' own controller: the pod's address on the default network. */
  slice: slice("sample-deployment-rkk4n", "10.244.1.17", {
    generateName: "sample-deployment-",
    labels: {
      app: "l3pod",
      "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
      "kubernetes.io/service-name": "sample-deployment",
    },
    resourceVersion: "31533",
  }),
  /** By OVN-Kubernetes: its address on the user-defined network. */
  mirrored: slice("l3-network-sample-deployment-hgkmw", "10.128.1.3", {
    generateName: "l3-network-sample-deployment-",
    labels: {
      "endpointslice.kubernetes.io/managed-by": "endpointslice-mirror-controller.k8s.ovn.org",
      "k8s.ovn.org/service-name": "sample-deployment",
      "k8s.ovn.org/source-endpointslice-version": "31533",
    },
    annotations: {
      "k8s.ovn.org/endpointslice-network": "l3-network",
      "k8s.ovn.org/source-endpointslice": "sample-deployment-rkk4n",
    },
    resourceVersion: "31535",
  }),
} as const;

function serviceSpec(fields: ServiceFields): Record<string, unknown> {
  const families = [...new Set(fields.clusterIPs.map(familyOf))];
  const external = fields.type === "NodePort" || fields.type === "LoadBalancer" || fields.externalIPs !== undefined;
  return {
    type: fields.type ?? "ClusterIP",
    clusterIP: fields.clusterIPs[0],
    clusterIPs: fields.clusterIPs,
    ipFamilies: families,
    ipFamilyPolicy: families.length > 1 ? "RequireDualStack" : "SingleStack",
    ports: fields.ports.map(portSpec),
    internalTrafficPolicy: fields.internalTrafficPolicy ?? "Cluster",
    ...(external && { externalTrafficPolicy: fields.externalTrafficPolicy ?? "Cluster" }),
    ...(fields.externalIPs && { externalIPs: fields.externalIPs }),
    ...(fields.sourceRanges && { loadBalancerSourceRanges: fields.sourceRanges }),
    ...(fields.healthCheckNodePort !== undefined && { healthCheckNodePort: fields.healthCheckNodePort }),
    ...affinity(fields.affinitySeconds),
  };
}

function portSpec({ name = "", protocol = "TCP", port, targetPort = port, nodePort }: ServicePortFields) {
  return { ...(name !== "" && { name }), protocol, port, targetPort, ...(nodePort !== undefined && { nodePort }) };
}

function affinity(seconds: number | undefined) {
  if (seconds === undefined) return { sessionAffinity: "None" };
  return { sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP: { timeoutSeconds: seconds } } };
}

function ingress({ ip, ipMode = "VIP" }: { ip: string; ipMode?: string }) {
  return { ip, ipMode };
}

function endpoint(fields: EndpointFields) {
  const { address, nodeName, ready = true, serving = ready, terminating = false } = fields;
  return {
    addresses: [address],
    conditions: { ready, serving, terminating },
    ...(nodeName !== undefined && { nodeName }),
    ...((fields.zoneHints ?? fields.nodeHints) && { hints: hints(fields) }),
  };
}

function hints({ zoneHints, nodeHints }: EndpointFields) {
  const named = (names: readonly string[]) => names.map((name) => ({ name }));
  return { ...(zoneHints && { forZones: named(zoneHints) }), ...(nodeHints && { forNodes: named(nodeHints) }) };
}

/** The value, of which each field that is read, present or not, is noted by its path without places in lists. */
export function notingReads(value: unknown, read: Set<string>, path = ""): unknown {
  if (typeof value !== "object" || value === null) return value;
  return new Proxy(value, {
    get(of, key) {
      const inner: unknown = Reflect.get(of, key);
      if (typeof key === "symbol" || (Array.isArray(of) && !Object.hasOwn(of, key))) return inner;
      const at = Array.isArray(of) ? path : `${path}.${key}`;
      if (!(Array.isArray(of) && key === "length")) read.add(at);
      return notingReads(inner, read, at);
    },
  });
}
