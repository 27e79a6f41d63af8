import type { DemoNode } from "./rules.ts";

export const DEMO_NODE: DemoNode = { name: "node-a", addresses: ["10.201.0.10"], podCIDRs: ["10.144.1.0/24"] };

/** A service with a node port and endpoints on two nodes, and one without endpoints. */
export const DEMO_OBJECTS = `apiVersion: v1
kind: Service
metadata: { namespace: shop, name: web }
spec:
  type: NodePort
  clusterIP: 10.96.0.10
  ports: [{ name: http, port: 80, nodePort: 30080 }]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  namespace: shop
  name: web-1
  labels: { kubernetes.io/service-name: web }
addressType: IPv4
ports: [{ name: http, port: 8080 }]
endpoints:
  - { addresses: [10.144.1.5], nodeName: node-a }
  - { addresses: [10.144.2.6], nodeName: node-b }
  - { addresses: [10.144.2.7], nodeName: node-b }
---
apiVersion: v1
kind: Service
metadata: { namespace: shop, name: empty }
spec:
  clusterIP: 10.96.0.11
  ports: [{ port: 80 }]
`;
