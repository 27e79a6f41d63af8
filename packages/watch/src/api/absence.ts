import { isObject, objectsAt, textAt } from "@fairlead/base";
import type { OtherResource } from "../change.ts";
import { discoveryPath } from "../resources.ts";
import { ApiError, beginningOf } from "./errors.ts";
import { get, type Requester } from "./request.ts";

const IDLE_MS = 65_000;

/**
 * Whether a resource that could not be read is not there at all. Who may not read it is told 403 also of one that does
 * not exist; every authenticated user may list the resources.
 *
 * @param error what the server answered
 */
export async function isAbsent(
  requester: Requester,
  resource: OtherResource,
  error: ApiError,
  signal: AbortSignal,
): Promise<boolean> {
  if (error.code === 404) return true;
  try {
    const request = { path: discoveryPath(resource), idleMilliseconds: IDLE_MS, signal };
    const names = resourcesIn(await get(requester, request, beginningOf));
    return names !== undefined && !names.includes(resource.plural);
  } catch (failure) {
    return failure instanceof ApiError && failure.code === 404;
  }
}

/** metav1.APIResourceList; undefined: it cannot be read. */
function resourcesIn(text: string): readonly (string | undefined)[] | undefined {
  try {
    const list: unknown = JSON.parse(text);
    return isObject(list) ? objectsAt(list, "resources").map((one) => textAt(one, "name")) : undefined;
  } catch {
    return undefined;
  }
}
