import {
  address,
  cidr,
  cidrs,
  either,
  fields,
  flag,
  type Keep,
  listOf,
  name,
  number,
  oneOf,
  text,
  time,
} from "./keep.ts";
import { metadata } from "./metadata.ts";

const PROTOCOL = oneOf("TCP", "UDP", "SCTP");
const POLICY = oneOf("Cluster", "Local");
const CLUSTER_IP = either(address, oneOf("None", ""));
/** The empty one is that of a single port. */
const PORT_NAME = either(name, oneOf(""));

/** @param annotations that rules of the configuration ask for, alongside Fairlead's own */
export function serviceKeep(annotations: Iterable<string>): Keep {
  const asked = Object.fromEntries(Array.from(annotations, (one) => [one, name]));
  return fields({
    apiVersion: oneOf("v1"),
    kind: oneOf("Service"),
    metadata: metadata({
      labels: { "service.kubernetes.io/service-proxy-name": name, "k8s-app": oneOf("kube-dns") },
      annotations: {
        "ovn.kubernetes.io/vpc": name,
        ...asked,
        "fairlead.dev/node-port-addresses": cidrs,
        "fairlead.dev/ownership": oneOf("ours", "foreign"),
        "fairlead.dev/ipvs-scheduler": text(/^[a-z]{1,6}$/),
        "fairlead.dev/fast-path": oneOf("off"),
        "fairlead.dev/balance": oneOf("random", "source-hash"),
        "fairlead.dev/local-port": text(/^(?:(?:[a-z0-9-]{1,63}=)?\d{1,5}(?:,|$))+$/),
      },
    }),
    spec: fields({
      type: oneOf("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"),
      clusterIP: CLUSTER_IP,
      clusterIPs: listOf(CLUSTER_IP),
      ipFamilies: listOf(oneOf("IPv4", "IPv6")),
      ipFamilyPolicy: oneOf("SingleStack", "PreferDualStack", "RequireDualStack"),
      ports: listOf(
        fields({ name: PORT_NAME, protocol: PROTOCOL, port: number, nodePort: number, targetPort: number }),
      ),
      externalIPs: listOf(address),
      loadBalancerSourceRanges: listOf(cidr),
      internalTrafficPolicy: POLICY,
      externalTrafficPolicy: POLICY,
      sessionAffinity: oneOf("None", "ClientIP"),
      sessionAffinityConfig: fields({ clientIP: fields({ timeoutSeconds: number }) }),
      trafficDistribution: text(/^Prefer[A-Za-z]{1,20}$/),
      healthCheckNodePort: number,
      publishNotReadyAddresses: flag,
    }),
    status: fields({
      loadBalancer: fields({ ingress: listOf(fields({ ip: address, ipMode: oneOf("VIP", "Proxy") })) }),
    }),
  });
}

export const ENDPOINT_SLICE: Keep = fields({
  apiVersion: oneOf("discovery.k8s.io/v1"),
  kind: oneOf("EndpointSlice"),
  metadata: metadata({
    labels: {
      "kubernetes.io/service-name": name,
      "k8s.ovn.org/service-name": name,
      "endpointslice.kubernetes.io/managed-by": name,
    },
    annotations: {
      "endpoints.kubernetes.io/last-change-trigger-time": time,
      "k8s.ovn.org/endpointslice-network": name,
      "k8s.ovn.org/source-endpointslice": name,
    },
  }),
  addressType: oneOf("IPv4", "IPv6", "FQDN"),
  ports: listOf(fields({ name: PORT_NAME, protocol: PROTOCOL, port: number })),
  endpoints: listOf(
    fields({
      addresses: listOf(address),
      conditions: fields({ ready: flag, serving: flag, terminating: flag }),
      nodeName: name,
      zone: name,
      hints: fields({ forZones: listOf(fields({ name })), forNodes: listOf(fields({ name })) }),
    }),
  ),
});

export const SERVICE_CIDR: Keep = fields({
  apiVersion: oneOf("networking.k8s.io/v1", "networking.k8s.io/v1beta1"),
  kind: oneOf("ServiceCIDR"),
  metadata: metadata(),
  spec: fields({ cidrs: listOf(cidr) }),
});
