import { objectAt, objectsAt, textAt } from "@fairlead/base";
import type { ObjectRequest, PostAnswer } from "@fairlead/watch";

/** The API server's store takes no object of this size. */
const MOST_BYTES = 2 ** 21;

/**
 * metadata.uid of a Service, by which `kubectl describe service` finds its Events. It is read when there is an Event to
 * send: keeping it of every Service would cost memory on every node. The Service is listed by its name, since the role
 * of a proxy may list Services and not get them.
 *
 * @param send one request, which rejects when there is no answer
 * @returns undefined: there is no such Service, or it may not be read
 * @throws Error when there is no answer, or one that cannot be read
 */
export async function serviceUID(
  send: (request: ObjectRequest) => Promise<PostAnswer>,
  namespace: string,
  name: string,
): Promise<string | undefined> {
  const query = new URLSearchParams({ fieldSelector: `metadata.name=${name}`, resourceVersion: "0" });
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/services?${query}`;
  const { status, body } = await send({ method: "GET", path, mostBytes: MOST_BYTES });
  if (status !== 200) return undefined;
  const [found] = objectsAt(JSON.parse(body), "items");
  return found && textAt(objectAt(found, "metadata"), "uid");
}
