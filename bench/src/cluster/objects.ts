import type { ApiObject } from "@fairlead/lab/control-plane/api-client";

/** How much there is. */
export interface Size {
  readonly services: number;
  /** Of each service. */
  readonly endpoints: number;
}

/** The Kubernetes namespace that everything is in. */
const NAMESPACE = "bench";

export const NODE_NAME = "bench-node";

const SERVICE_PORT = 80;
const TARGET_PORT = 8080;

/** Endpoints are spread over 50 nodes, none of them the one that is measured. */
const OTHER_NODES = 50;

export const NAMESPACE_OBJECT: ApiObject = { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } };

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
    spec: { clusterIP: serviceAddress(index), ports: [{ name: "http", port: SERVICE_PORT, targetPort: TARGET_PORT }] },
  };
}

/** As many endpoints as Kubernetes' own controller puts into a slice (`--max-endpoints-per-slice`). */
const IN_A_SLICE = 100;

/** How many slices a service of so many endpoints has. */
export function sliceCount(endpoints: number): number {
  return Math.ceil(endpoints / IN_A_SLICE);
}

/** The number of the slice that an endpoint is in, by the endpoint's place. */
export function sliceOfPlace(place: number): number {
  return Math.floor(place / IN_A_SLICE);
}

/**
 * One of its slices, with the addresses that `podAddress` gives, but for those of `moved` (place → address).
 *
 * @param endpoints of the service, in all its slices
 * @param number of the slice
 */
export function sliceObject(
  index: number,
  endpoints: number,
  number = 0,
  moved: ReadonlyMap<number, string> = new Map(),
): ApiObject {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: `${serviceName(index)}-${number}`,
      namespace: NAMESPACE,
      labels: { "kubernetes.io/service-name": serviceName(index) },
    },
    addressType: "IPv4",
    ports: [{ name: "http", port: TARGET_PORT, protocol: "TCP" }],
    endpoints: endpointList(index, endpoints, number, moved),
  };
}

/** Those of one slice. */
export function endpointList(
  index: number,
  endpoints: number,
  number: number,
  moved: ReadonlyMap<number, string>,
): readonly object[] {
  const first = number * IN_A_SLICE;
  return Array.from({ length: Math.min(IN_A_SLICE, endpoints - first) }, (_, at) => first + at).map((place) => ({
    addresses: [moved.get(place) ?? podAddress(index * endpoints + place)],
    conditions: { ready: true },
    nodeName: `node-${place % OTHER_NODES}`,
  }));
}

/** An address of `podRange`. */
function podAddress(number: number): string {
  return inTen(144, number + 256);
}

/** An address that no endpoint has at first; for the one that moves. */
export function movedAddress(number: number): string {
  return inTen(152, number + 256);
}

/** Of the object that says whose a service's address is. */
export function addressPath(index: number): string {
  return `/apis/networking.k8s.io/v1/ipaddresses/${serviceAddress(index)}`;
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
