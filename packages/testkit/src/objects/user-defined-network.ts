import type { RawObject } from "./raw.ts";
import { service } from "./service.ts";

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
