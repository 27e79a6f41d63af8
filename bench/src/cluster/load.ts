import { type ApiClient, objectPath } from "@fairlead/e2e/control-plane/api-client";
import { endpointList, namespaceObject, serviceObject, sliceObject } from "./objects.ts";

/** How much there is. */
export interface Size {
  readonly services: number;
  /** Of each service. */
  readonly endpoints: number;
}

/** Requests on their way at the same time; more make the API server no faster. */
const AT_ONCE = 16;

/**
 * Writes services and slices as fast as the API server takes them.
 *
 * @param there how many services are there already
 */
export async function fill(api: ApiClient, { services, endpoints }: Size, there = 0): Promise<void> {
  if (there === 0) await api.create(namespaceObject);
  let next = there;
  const work = async () => {
    for (let index = next++; index < services; index = next++) await createService(api, index, endpoints);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/** The slice first, so that the service comes to the proxy as a whole. */
async function createService(api: ApiClient, index: number, endpoints: number): Promise<void> {
  await createSlice(api, index, endpoints);
  await api.create(serviceObject(index));
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
