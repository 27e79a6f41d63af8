import { request } from "node:https";
import { text } from "node:stream/consumers";
import type { Service } from "@fairlead/core";
import type { ApiConnection } from "@fairlead/watch";
import { VPC_ANNOTATION } from "./vpc.ts";

const TIMEOUT_MS = 15_000;

/**
 * Writes the annotation with the service's VPC.
 *
 * @returns the status; 404: the service has gone meanwhile
 * @throws Error when there is no answer
 */
export async function annotate(
  { server, credentials }: ApiConnection,
  { namespace, name }: Service,
  vpc: string,
): Promise<number> {
  const { headers, tls } = await credentials();
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const call = request(`${server}/api/v1/namespaces/${namespace}/services/${name}`, {
    ...tls,
    method: "PATCH",
    timeout: TIMEOUT_MS,
    headers: { ...headers, "content-type": "application/merge-patch+json" },
  });
  call.on("timeout", () => call.destroy(new Error(`no answer in ${TIMEOUT_MS} ms`)));
  call.on("error", reject);
  call.on("response", (response) => {
    text(response).then(() => resolve(response.statusCode ?? 0), reject);
  });
  call.end(JSON.stringify({ metadata: { annotations: { [VPC_ANNOTATION]: vpc } } }));
  return promise;
}
