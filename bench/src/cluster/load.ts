/** Fills the cluster with objects, and changes them. */

import { type ApiClient, type ApiObject, objectPath } from "@fairlead/lab/control-plane/api-client";
import { now } from "@fairlead/lab/support/wait-until";
import type { Bed } from "./bed.ts";
import {
  addressPath,
  endpointList,
  movedAddress,
  NAMESPACE_OBJECT,
  type Size,
  serviceObject,
  sliceCount,
  sliceObject,
  sliceOfPlace,
  storedServices,
} from "./objects.ts";

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

/** An endpoint that was given a new address. */
export interface Change {
  readonly address: string;
  /** Milliseconds since the epoch. */
  readonly asked: number;
}

/** kube-controller-manager's --concurrent-service-endpoint-syncs by default. */
const CONTROLLER_WORKERS = 5;

/**
 * Replaces endpoints as Kubernetes' controller does when workloads roll: those of a service one after the other, some
 * services at the same time, as fast as the API server takes it.
 *
 * @param first the number of the first address
 * @returns once the API server has answered
 */
export async function rollOut(
  api: ApiClient,
  { services, endpoints }: Size,
  count: number,
  first: number,
): Promise<readonly Change[]> {
  const most = Math.min(count, services * endpoints);
  const changes: Change[] = [];
  const replace = async (index: number) => {
    const moved = new Map<number, string>();
    for (let place = 0; place < endpoints && index * endpoints + place < most; place++) {
      const address = movedAddress(first + index * endpoints + place);
      moved.set(place, address);
      changes.push({ address, asked: now() });
      await moveEndpoints(api, index, endpoints, moved, place);
    }
  };
  await atOnce(0, Math.ceil(most / endpoints), replace, CONTROLLER_WORKERS);
  return changes;
}

/** Requests on their way at the same time; more make the API server no faster. */
const AT_ONCE = 16;

/** Calls `work` with the numbers from `first` up to below `end`, some at the same time. */
async function atOnce(
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
