import { type ApiClient, type ApiObject, objectPath } from "@fairlead/e2e/control-plane/api-client";
import type { Bed } from "./bed.ts";
import { addressPath, endpointList, NAMESPACE_OBJECT, type Size, serviceObject, sliceObject } from "./objects.ts";
import { storedServices } from "./stored.ts";

/** Requests on their way at the same time; more make the API server no faster. */
const AT_ONCE = 16;

/**
 * Adds services with their slices. The API server makes the first one, by which the others are written into etcd: it
 * would take minutes for ten thousand and store the same.
 *
 * @param there how many services are there already
 */
export async function fill({ controlPlane: { api }, etcd }: Bed, size: Size, there = 0): Promise<void> {
  if (there === 0) await api.create(NAMESPACE_OBJECT);
  const slice = await api.create(sliceObject(there, size.endpoints));
  const service = await api.create(serviceObject(there));
  const address = (await api.get(addressPath(there))) as ApiObject;
  await etcd.put(storedServices({ service, slice, address }, size, there + 1));
}

/** Calls `work` with the numbers from `first` up to below `end`, some at the same time. */
export async function atOnce(first: number, end: number, work: (number: number) => Promise<void>): Promise<void> {
  let next = first;
  const lane = async () => {
    for (let number = next++; number < end; number = next++) await work(number);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}

export async function createSlice(api: ApiClient, index: number, endpoints: number): Promise<void> {
  await api.create(sliceObject(index, endpoints));
}

export async function deleteSlice(api: ApiClient, index: number): Promise<void> {
  await api.delete(objectPath(sliceObject(index, 0)));
}

/** Gives endpoints of a service other addresses, by their place; those that are not named have their first ones. */
export async function moveEndpoints(
  api: ApiClient,
  index: number,
  endpoints: number,
  moved: ReadonlyMap<number, string>,
): Promise<void> {
  await api.patch(objectPath(sliceObject(index, 0)), { endpoints: endpointList(index, endpoints, moved) });
}
