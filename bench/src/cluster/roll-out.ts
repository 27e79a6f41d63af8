import type { ApiClient } from "@fairlead/lab/control-plane/api-client";
import { atOnce, moveEndpoints } from "./load.ts";
import { now } from "./now.ts";
import { movedAddress, type Size } from "./objects.ts";

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
