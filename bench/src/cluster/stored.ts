import { randomUUID } from "node:crypto";
import type { ApiObject } from "@fairlead/lab/control-plane/api-client";
import type { StoredObject } from "./etcd.ts";
import { type Size, serviceObject, sliceCount, sliceObject } from "./objects.ts";

/** What the API server made of one service, one of its slices and its address. */
export interface Samples {
  readonly service: ApiObject;
  readonly slice: ApiObject;
  readonly address: ApiObject;
}

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
