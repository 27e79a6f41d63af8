import { setTimeout as sleep } from "node:timers/promises";
import { type ApiClient, objectPath } from "@fairlead/lab/control-plane/api-client";
import { now } from "../cluster/now.ts";
import { endpointList, movedAddress, type Size, sliceObject } from "../cluster/objects.ts";
import type { Change } from "../cluster/roll-out.ts";

/** By which the services' turn comes: neighbors in time are not neighbors in number. */
const STEP = 7919;
const TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time";

/** How many changes, and how fast. */
export interface Rate {
  readonly perSecond: number;
  readonly seconds: number;
}

/**
 * Changes one endpoint of another service each time, at an even rate, whatever the API server's answers take. Each
 * slice says when its change was triggered, as the EndpointSlice controller does.
 *
 * @param first the number of the first address; no number may come twice in the life of a proxy
 * @throws Error when the API server refuses a change
 */
export async function changeAtRate(api: ApiClient, size: Size, rate: Rate, first: number): Promise<readonly Change[]> {
  const started = performance.now();
  const changes: Change[] = [];
  const requests: Promise<unknown>[] = [];
  for (let number = 0; number < rate.perSecond * rate.seconds; number++) {
    const wait = started + (number * 1000) / rate.perSecond - performance.now();
    if (wait > 0) await sleep(wait);
    const address = movedAddress(first + number);
    changes.push({ address, asked: now() });
    const request = change(api, size, ((first + number) * STEP) % size.services, address);
    // What fails meanwhile is thrown in the end.
    request.catch(() => {});
    requests.push(request);
  }
  await Promise.all(requests);
  return changes;
}

function change(api: ApiClient, { endpoints }: Size, index: number, address: string): Promise<unknown> {
  return api.patch(objectPath(sliceObject(index, endpoints)), {
    metadata: { annotations: { [TRIGGER_TIME]: new Date(now()).toISOString() } },
    endpoints: endpointList(index, endpoints, 0, new Map([[0, address]])),
  });
}
