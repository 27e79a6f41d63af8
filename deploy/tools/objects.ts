/** One service with one endpoint, as the API server fills them in. */
export const OBJECTS = [
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "nginx-calico", namespace: "default" },
    spec: { clusterIP: "10.96.67.75", ports: [{ name: "", port: 80, protocol: "TCP" }] },
  },
  {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: "nginx-calico-1",
      namespace: "default",
      labels: { "kubernetes.io/service-name": "nginx-calico" },
    },
    addressType: "IPv4",
    ports: [{ name: "", port: 80, protocol: "TCP" }],
    endpoints: [{ addresses: ["10.144.154.71"], conditions: { ready: true } }],
  },
];

/** The chains of its service and of its endpoint, in table nat. */
export const SERVICE_CHAIN = "KUBE-SVC-RH2G6EKXTJDCSNM7";
export const ENDPOINT_CHAIN = "KUBE-SEP-ZMODNQBWAQHJ2KQZ";

/** The node that the agent runs on. */
export const NODE = {
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "node-a" },
  status: { addresses: [{ type: "InternalIP", address: "192.0.2.10" }] },
};
