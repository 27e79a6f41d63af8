import { type ApiClient, type ApiObject, objectPath } from "@fairlead/lab/control-plane/api-client";
import type { Bed } from "./bed.ts";
import {
  addressPath,
  endpointList,
  NAMESPACE_OBJECT,
  type Size,
  serviceObject,
  sliceCount,
  sliceObject,
  sliceOfPlace,
} from "./objects.ts";
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
  const [slice] = await createSlices(api, there, size.endpoints);
  if (slice === undefined) throw new RangeError("a service without endpoints has no slice");
  const service = await api.create(serviceObject(there));
  const address = (await api.get(addressPath(there))) as ApiObject;
  await etcd.put(storedServices({ service, slice, address }, size, there + 1));
}

/** Calls `work` with the numbers from `first` up to below `end`, some at the same time. */
export async function atOnce(
  first: number,
  end: number,
  work: (number: number) => Promise<void>,
  lanes = AT_ONCE,
): Promise<void> {
  let next = first;
  const lane = async () => {
    for (let number = next++; number < end; number = next++) await work(number);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

/** @returns the slices as the API server made them */
export async function createSlices(api: ApiClient, index: number, endpoints: number): Promise<readonly ApiObject[]> {
  const made: ApiObject[] = [];
  for (let number = 0; number < sliceCount(endpoints); number++) {
    made.push(await api.create(sliceObject(index, endpoints, number)));
  }
  return made;
}

export async function deleteSlices(api: ApiClient, index: number, endpoints: number): Promise<void> {
  for (let number = 0; number < sliceCount(endpoints); number++) {
    await api.delete(objectPath(sliceObject(index, endpoints, number)));
  }
}

/**
 * Gives endpoints of a service other addresses, by their place; those that are not named have their first ones.
 *
 * @param place of the only one that differs from before: just its slice is written
 */
export async function moveEndpoints(
  api: ApiClient,
  index: number,
  endpoints: number,
  moved: ReadonlyMap<number, string>,
  place?: number,
): Promise<void> {
  const all = Array.from({ length: sliceCount(endpoints) }, (_, number) => number);
  for (const number of place === undefined ? all : [sliceOfPlace(place)]) {
    const path = objectPath(sliceObject(index, endpoints, number));
    await api.patch(path, { endpoints: endpointList(index, endpoints, number, moved) });
  }
}
