import { systemClock } from "@fairlead/base";
import type { ApiConnection } from "./connection.ts";
import { beginningOf } from "./errors.ts";
import { sendHttp } from "./http-send.ts";

/** Milliseconds for the whole of it. */
const TIMEOUT = 10_000;

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

/** As `postObject`, with what the server says. */
export async function post(
  connection: ApiConnection,
  path: string,
  object: unknown,
  userAgent: string,
): Promise<PostAnswer> {
  const stop = new AbortController();
  const cancel = systemClock.after(TIMEOUT, () => stop.abort());
  try {
    const request = { path, body: JSON.stringify(object), signal: stop.signal };
    const { status, body } = await sendHttp(connection, userAgent, systemClock, request);
    // The status says what is needed, whatever becomes of the rest.
    return { status, body: await beginningOf(body).catch(() => "") };
  } catch (error) {
    throw stop.signal.aborted ? new Error(`no answer from ${connection.server} within ${TIMEOUT / 1000} s`) : error;
  } finally {
    cancel();
  }
}
