import http from "node:http";
import https from "node:https";
import type { ApiConnection } from "./connection.ts";

/** Milliseconds for the whole of it. */
const timeout = 10_000;

/**
 * Creates one object.
 *
 * @param path of the collection, for example `/api/v1/namespaces/default/events`
 * @returns the status; 201: created, 403: the role does not allow it
 * @throws Error when there is no connection, or no answer in time
 */
export async function postObject(
  connection: ApiConnection,
  path: string,
  object: unknown,
  userAgent: string,
): Promise<number> {
  const { headers, tls } = await connection.credentials();
  const body = JSON.stringify(object);
  const url = new URL(connection.server + path);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const request = (url.protocol === "https:" ? https : http).request(url, {
    ...tls,
    method: "POST",
    headers: { ...headers, accept: "application/json", "content-type": "application/json", "user-agent": userAgent },
    signal: AbortSignal.timeout(timeout),
  });
  request.once("response", (response) => {
    response.on("error", () => {}).resume();
    resolve(response.statusCode ?? 0);
  });
  request.once("error", reject);
  request.end(body);
  return promise;
}
