/** Single requests that write or review, without a watch. */

import { systemClock } from "@fairlead/base";
import { beginningOf } from "./errors.ts";
import { type ApiConnection, type ApiResponse, type HttpRequest, sendHttp } from "./http.ts";

/** An API server's answer to an object that it was given. */
export interface PostAnswer {
  /** 201: created, 403: the role does not allow it. */
  readonly status: number;
  /** Its beginning where it is long; "" where it broke off. */
  readonly body: string;
}

/**
 * Creates one object, by the way that the connection's other requests take.
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

/**
 * Sends one request, by the way that the connection's other requests take, and reads the whole answer.
 *
 * @throws Error when there is no connection, no answer in time, or a longer one than is taken
 */
export function requestObject(
  connection: ApiConnection,
  { method, path, object, mostBytes = Number.POSITIVE_INFINITY }: ObjectRequest,
  userAgent: string,
): Promise<PostAnswer> {
  const request = { method, path, ...(object !== undefined && { body: JSON.stringify(object) }) };
  return inTime(connection, userAgent, request, async ({ status, body }) => {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of body) {
      size += chunk.length;
      if (size > mostBytes) throw new Error(`the answer to ${method} ${path} is longer than ${mostBytes} bytes`);
      chunks.push(chunk);
    }
    return { status, body: Buffer.concat(chunks).toString() };
  });
}

/** A request about one object, or one to create an object in a collection. */
export interface ObjectRequest {
  /** The method of the request. */
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Of the object, for POST of its collection. */
  readonly path: string;
  /** Sent as JSON. */
  readonly object?: unknown;
  /** A longer answer is an error. Default: any is taken. */
  readonly mostBytes?: number;
}

/** A permission in all namespaces. */
export interface Access {
  /** The verb of the request, as RBAC has it. */
  readonly verb: "get" | "list" | "watch" | "create";
  /** "" for the core group. */
  readonly group: string;
  /** The plural name: `services`. */
  readonly resource: string;
}

/**
 * Whether the connection's user has that permission (SelfSubjectAccessReview, open to every user).
 *
 * @throws Error when there is no connection, no answer in time, or none that says it
 */
export async function isAllowed(connection: ApiConnection, access: Access, userAgent: string): Promise<boolean> {
  const review = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    spec: { resourceAttributes: access },
  };
  const { status, body } = await post(connection, PATH, review, userAgent);
  const allowed = status === 201 ? allowedIn(JSON.parse(body)) : undefined;
  if (allowed === undefined) throw new Error(`${connection.server}${PATH} answered ${status}`);
  return allowed;
}

/** Milliseconds for the whole of it. */
const TIMEOUT = 10_000;

/** As `postObject`, with what the server says. */
function post(connection: ApiConnection, path: string, object: unknown, userAgent: string): Promise<PostAnswer> {
  const request = { path, body: JSON.stringify(object) };
  return inTime(connection, userAgent, request, async ({ status, body }) => {
    // The status says what is needed, whatever becomes of the rest.
    return { status, body: await beginningOf(body).catch(() => "") };
  });
}

async function inTime<T>(
  connection: ApiConnection,
  userAgent: string,
  request: Omit<HttpRequest, "signal">,
  read: (response: ApiResponse) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const cancel = systemClock.after(TIMEOUT, () => stop.abort());
  try {
    return await read(await sendHttp(connection, userAgent, systemClock, { ...request, signal: stop.signal }));
  } catch (error) {
    throw stop.signal.aborted ? new Error(`no answer from ${connection.server} within ${TIMEOUT / 1000} s`) : error;
  } finally {
    cancel();
  }
}

const PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

function allowedIn(review: { readonly status?: { readonly allowed?: unknown } } | null): boolean | undefined {
  const allowed = review?.status?.allowed;
  return typeof allowed === "boolean" ? allowed : undefined;
}
