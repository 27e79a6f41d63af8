import http from "node:http";
import https from "node:https";
import type { ApiConnection } from "./connection.ts";

/** Milliseconds for the whole of it. */
const timeout = 10_000;

/** An API server's answer to an object that it was given. */
export interface PostAnswer {
  /** 201: created, 403: the role does not allow it. */
  readonly status: number;
  readonly body: string;
}

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
  return (await post(connection, path, object, userAgent)).status;
}

/** As `postObject`, with what the server says. */
export async function post(
  connection: ApiConnection,
  path: string,
  object: unknown,
  userAgent: string,
): Promise<PostAnswer> {
  const { headers, tls } = await connection.credentials();
  const sent = JSON.stringify(object);
  const url = new URL(connection.server + path);
  const { promise, resolve, reject } = Promise.withResolvers<PostAnswer>();
  const request = (url.protocol === "https:" ? https : http).request(url, {
    ...tls,
    method: "POST",
    headers: { ...headers, accept: "application/json", "content-type": "application/json", "user-agent": userAgent },
    signal: AbortSignal.timeout(timeout),
  });
  request.once("response", (response) => {
    const { statusCode: status = 0 } = response;
    let body = "";
    response.setEncoding("utf8");
    response.on("data", (piece: string) => {
      body += piece;
    });
    // The status says what is needed, whatever becomes of the rest.
    response.on("error", () => resolve({ status, body }));
    response.on("end", () => resolve({ status, body }));
  });
  request.once("error", reject);
  request.end(sent);
  return promise;
}
