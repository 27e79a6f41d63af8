import type { Clock } from "@fairlead/base";
import { BrokenResponseError, errorOf, SilentServerError } from "./errors.ts";
import { ANSWER_WITHIN, type Pulse, QUIET_FOR } from "./pulse.ts";
import type { ApiRequest, ApiResponse, Transport } from "./transport.ts";
import { type Watchdog, watchdog } from "./watchdog.ts";

export interface Requester {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly pulse: Pulse;
}

export interface RequestOptions {
  readonly path: string;
  /** The Accept header; absent: JSON. */
  readonly accept?: string;
  /**
   * Without a byte for this long, head included, the connection counts as dead. Time that the reader takes is not
   * counted.
   */
  readonly idleMilliseconds: number;
  readonly signal: AbortSignal;
  /** The server said 200. */
  readonly onOpen?: () => void;
}

/**
 * One GET: gives the body's chunks and their Content-Type to `read` and closes the connection's stream when `read` is
 * done, however it ends.
 *
 * @throws ApiError any status but 200
 * @throws BrokenResponseError the body broke off or stood still
 * @throws SilentServerError the server has given no sign of life
 * @throws Error no connection, or what `read` threw
 */
export async function get<R>(
  { transport, clock, pulse }: Requester,
  { path, accept, idleMilliseconds, signal, onOpen }: RequestOptions,
  read: (chunks: AsyncIterable<Uint8Array>, contentType: string | undefined) => Promise<R>,
): Promise<R> {
  const stop = new AbortController();
  const abort = () => stop.abort();
  signal.addEventListener("abort", abort);
  if (signal.aborted) stop.abort();
  const dog = watchdog(clock, idleMilliseconds, abort);
  const stopWaiting = pulse.wait(() => dog.bite(silence));
  try {
    const response = await open(transport, { path, signal: stop.signal, ...(accept && { accept }) }, dog);
    pulse.heard();
    onOpen?.();
    return await read(guarded(response.body, dog, pulse), response.header("content-type"));
  } finally {
    stopWaiting();
    dog.rest();
    signal.removeEventListener("abort", abort);
    stop.abort();
  }
}

const silence = new SilentServerError(
  `the server does not respond: no data for ${QUIET_FOR / 1000} s, and no answer to a test request within ${ANSWER_WITHIN / 1000} s`,
);

async function open(transport: Transport, request: ApiRequest, dog: Watchdog): Promise<ApiResponse> {
  dog.watch();
  try {
    const response = await transport(request);
    if (response.status !== 200) throw await errorOf(response);
    return response;
  } catch (error) {
    throw dog.why(`no answer for ${dog.seconds} s`) ?? error;
  } finally {
    dog.rest();
  }
}

async function* guarded(body: AsyncIterable<Uint8Array>, dog: Watchdog, pulse: Pulse): AsyncGenerator<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]();
  try {
    while (true) {
      const next = await nextOf(chunks, dog);
      if (next.done === true) return;
      pulse.heard();
      yield next.value;
    }
  } finally {
    await chunks.return?.();
  }
}

async function nextOf(chunks: AsyncIterator<Uint8Array>, dog: Watchdog): Promise<IteratorResult<Uint8Array>> {
  dog.watch();
  try {
    return await chunks.next();
  } catch (error) {
    throw (
      dog.why(`no data for ${dog.seconds} s`) ?? new BrokenResponseError("the connection ended early", { cause: error })
    );
  } finally {
    dog.rest();
  }
}
