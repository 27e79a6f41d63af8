/** Objects for a benchmark, and how they are written into etcd as the API server stores them. */

import { randomUUID } from "node:crypto";
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import type { ApiObject } from "@fairlead/lab/control-plane/api-client";

/** How much there is. */
export interface Size {
  readonly services: number;
  /** Of each service. */
  readonly endpoints: number;
}

export const NODE_NAME = "bench-node";

/** The Kubernetes namespace that everything is in. */
const NAMESPACE = "bench";

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

const SERVICE_PORT = 80;
const TARGET_PORT = 8080;

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
 * One of its slices, with the addresses that `podAddress` gives.
 *
 * @param endpoints of the service, in all its slices
 * @param number of the slice
 */
export function sliceObject(index: number, endpoints: number, number = 0): ApiObject {
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
    endpoints: endpointList(index, endpoints, number, new Map()),
  };
}

/** Endpoints are spread over 50 nodes, none of them the one that is measured. */
const OTHER_NODES = 50;

/** Those of one slice; `moved` have another address (place → address). */
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

/** An address that no endpoint has at first; for the one that moves. */
export function movedAddress(number: number): string {
  return inTen(152, number + 256);
}

/** Of the IPAddress object of a service's address. */
export function addressPath(index: number): string {
  return `/apis/networking.k8s.io/v1/ipaddresses/${serviceAddress(index)}`;
}

interface Samples {
  readonly service: ApiObject;
  readonly slice: ApiObject;
  readonly address: ApiObject;
}

type StoredObject = readonly [key: string, object: ApiObject];

/** Services from number `first` up to below `services`, as the API server would have stored them. */
export function* storedServices(
  samples: Samples,
  { services, endpoints }: Size,
  first: number,
): Generator<StoredObject, void, void> {
  for (let index = first; index < services; index++) {
    const service = storedService(samples.service, index);
    const { name, namespace = "" } = service.metadata;
    const address = storedAddress(samples.address, service);
    // The slices first, so that the service comes to the proxy as a whole.
    for (let number = 0; number < sliceCount(endpoints); number++) {
      const slice = stored(samples.slice, sliceObject(index, endpoints, number));
      yield [`/registry/endpointslices/${namespace}/${slice.metadata.name}`, slice];
    }
    yield [`/registry/ipaddresses/${address.metadata.name}`, address];
    yield [`/registry/services/specs/${namespace}/${name}`, service];
  }
}

/** etcd's own limits for one transaction are 128 operations and 1.5 MB. */
const OPERATIONS = 128;
const BYTES = 1_000_000;
const TIMEOUT_MS = 60_000;

/** Writes what an API server keeps, without asking that. */
export class Etcd {
  readonly #socketPath: string;
  readonly #agent = new Agent({ keepAlive: true });

  /** @param socketPath of a unix socket that leads to etcd's address for clients */
  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** Many in each transaction. */
  async put(objects: Iterable<StoredObject>): Promise<void> {
    let operations: string[] = [];
    let bytes = 0;
    for (const [key, object] of objects) {
      const operation = JSON.stringify({ requestPut: { key: base64(key), value: base64(JSON.stringify(object)) } });
      if (operations.length === OPERATIONS || bytes + operation.length > BYTES) {
        await this.#transaction(operations);
        operations = [];
        bytes = 0;
      }
      operations.push(operation);
      bytes += operation.length;
    }
    if (operations.length > 0) await this.#transaction(operations);
  }

  close(): void {
    this.#agent.destroy();
  }

  /** By etcd's gateway for JSON. */
  #transaction(operations: readonly string[]): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const outgoing = request({
      agent: this.#agent,
      socketPath: this.#socketPath,
      path: "/v3/kv/txn",
      method: "POST",
      timeout: TIMEOUT_MS,
      headers: { host: "etcd", "content-type": "application/json" },
    });
    outgoing.on("timeout", () => outgoing.destroy(new Error(`etcd: no answer in ${TIMEOUT_MS} ms`)));
    outgoing.on("error", reject);
    outgoing.on("response", async (response) => {
      const answer = await text(response);
      if (response.statusCode === 200) resolve();
      else reject(new Error(`etcd: ${response.statusCode} ${answer}`));
    });
    outgoing.end(`{"success":[${operations.join(",")}]}`);
    return promise;
  }
}

/** An address of `podRange`. */
function podAddress(number: number): string {
  return inTen(144, number + 256);
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

/** The wanted object with what the server added to the sample; lists are the wanted one's, but for the ports. */
function stored(sample: ApiObject, wanted: ApiObject): ApiObject {
  const { resourceVersion: _, ...metadata } = sample.metadata;
  const { ports } = sample;
  return { ...sample, ...wanted, ports, metadata: { ...metadata, ...wanted.metadata, uid: randomUUID() } };
}

function storedService(sample: ApiObject, index: number): ApiObject {
  const wanted = serviceObject(index);
  const clusterIP = clusterIPOf(wanted);
  const { ports: _, ...service } = stored(sample, wanted);
  return { ...service, spec: { ...specOf(sample), clusterIP, clusterIPs: [clusterIP] } };
}

/** Without it the API server would find that the service's address is not allocated, and mend that one by one. */
function storedAddress(sample: ApiObject, { metadata: { name, namespace }, ...service }: ApiObject): ApiObject {
  const { resourceVersion: _, ...metadata } = sample.metadata;
  const parentRef = { group: "", resource: "services", namespace, name };
  return {
    ...sample,
    metadata: { ...metadata, name: clusterIPOf(service), uid: randomUUID() },
    spec: { parentRef },
  };
}

function clusterIPOf(service: Readonly<Record<string, unknown>>): string {
  return String(specOf(service)["clusterIP"]);
}

function specOf(object: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return object["spec"] as Readonly<Record<string, unknown>>;
}

function base64(value: string): string {
  return Buffer.from(value).toString("base64");
}
