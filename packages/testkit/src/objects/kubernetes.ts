import type { RawObject } from "./raw.ts";

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
