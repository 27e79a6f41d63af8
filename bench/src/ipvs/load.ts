import type { ApiClient, ApiObject } from "@fairlead/lab/control-plane/api-client";
import { type Load, NAMESPACE } from "./settings.ts";

const LANES = 16;

/** Makes the services and their slices. */
export async function fill(api: ApiClient, { services, endpoints }: Load): Promise<void> {
  await api.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
  const waiting = Array.from({ length: services }, (_, index) => index);
  const lane = async () => {
    for (let index = waiting.shift(); index !== undefined; index = waiting.shift()) {
      await api.create(service(index));
      await api.create(slice(index, addressesOf(index, endpoints)));
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

function service(index: number): ApiObject {
  const clusterIP = `10.100.${index >> 8}.${index & 255}`;
  const ports = [{ name: "http", port: 80, targetPort: 8080 }];
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: nameOf(index), namespace: NAMESPACE },
    spec: { clusterIP, ports },
  };
}

/** An endpoint's address, and the node that it is on. */
export interface LoadEndpoint {
  readonly address: string;
  readonly node: string;
}

export function slice(index: number, endpoints: readonly LoadEndpoint[]): ApiObject {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: nameOf(index),
      namespace: NAMESPACE,
      labels: { "kubernetes.io/service-name": nameOf(index) },
    },
    addressType: "IPv4",
    ports: [{ name: "http", port: 8080, protocol: "TCP" }],
    endpoints: endpoints.map(({ address, node }) => ({
      addresses: [address],
      nodeName: node,
      conditions: { ready: true },
    })),
  };
}

/** Of so many nodes that are not the measured one. */
const NODES = 50;

export function addressesOf(index: number, endpoints: number): LoadEndpoint[] {
  return Array.from({ length: endpoints }, (_, at) => {
    const number = 256 + index * endpoints + at;
    return {
      address: `10.${144 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`,
      node: `other-${number % NODES}`,
    };
  });
}

/** Addresses that no service of the load has, another one each time. */
export function newAddress(count: number): string {
  return `10.250.${count >> 8}.${count & 255}`;
}

function nameOf(index: number): string {
  return `svc-${index}`;
}
