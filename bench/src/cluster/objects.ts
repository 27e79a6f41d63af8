import type { ApiObject } from "@fairlead/e2e/control-plane/api-client";

/** The Kubernetes namespace that everything is in. */
const NAMESPACE = "bench";

export const NODE_NAME = "bench-node";

const PORT = 8080;

/** Endpoints are spread over 50 nodes, none of them the one that is measured. */
const OTHER_NODES = 50;

export const namespaceObject: ApiObject = { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } };

export function nodeObject(address: string): { readonly object: ApiObject; readonly status: unknown } {
  const addresses = [
    { type: "InternalIP", address },
    { type: "Hostname", address: NODE_NAME },
  ];
  return {
    object: { apiVersion: "v1", kind: "Node", metadata: { name: NODE_NAME } },
    status: { status: { addresses } },
  };
}

/** Service number `index`, with an address that no other one has. */
export function serviceObject(index: number): ApiObject {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: serviceName(index), namespace: NAMESPACE },
    spec: { clusterIP: serviceAddress(index), ports: [{ name: "http", port: 80, targetPort: PORT }] },
  };
}

/** Its endpoints: the addresses that `podAddress` gives, but for those of `moved` (place → address). */
export function sliceObject(
  index: number,
  endpoints: number,
  moved: ReadonlyMap<number, string> = new Map(),
): ApiObject {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: `${serviceName(index)}-a`,
      namespace: NAMESPACE,
      labels: { "kubernetes.io/service-name": serviceName(index) },
    },
    addressType: "IPv4",
    ports: [{ name: "http", port: PORT, protocol: "TCP" }],
    endpoints: endpointList(index, endpoints, moved),
  };
}

export function endpointList(index: number, endpoints: number, moved: ReadonlyMap<number, string>): readonly unknown[] {
  return Array.from({ length: endpoints }, (_, place) => ({
    addresses: [moved.get(place) ?? podAddress(index * endpoints + place)],
    conditions: { ready: true },
    nodeName: `node-${place % OTHER_NODES}`,
  }));
}

/** An address of 10.144.0.0/14, from which objects as made have theirs. */
function podAddress(number: number): string {
  return inTen(144, number + 256);
}

/** An address that no endpoint has at first; for the one that moves. */
export function movedAddress(number: number): string {
  return inTen(148, number + 256);
}

function serviceAddress(index: number): string {
  return inTen(100, index + 1);
}

function inTen(second: number, number: number): string {
  return `10.${second + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;
}

function serviceName(index: number): string {
  return `svc-${index}`;
}
