import type { Clock } from "../clock.ts";
import { BrokenResponseError, errorOf } from "./errors.ts";
import type { ApiResponse, Transport } from "./transport.ts";
import { type Watchdog, watchdog } from "./watchdog.ts";

export interface Requester {
  readonly transport: Transport;
  readonly clock: Clock;
}

export interface RequestOptions {
  readonly path: string;
  /** Without a byte for this long, head included, the connection counts as dead. Time that the reader takes is not counted. */
  readonly idleMilliseconds: number;
  readonly signal: AbortSignal;
  /** The server said 200. */
  readonly onOpen?: () => void;
}

/**
 * One GET: gives the body's chunks to `read` and closes the connection's stream when `read` is done, however it ends.
 *
 * @throws ApiError any status but 200
 * @throws BrokenResponseError the body broke off or stood still
 * @throws Error no connection, or what `read` threw
 */
export async function get<R>(
  { transport, clock }: Requester,
  { path, idleMilliseconds, signal, onOpen }: RequestOptions,
  read: (chunks: AsyncIterable<Uint8Array>) => Promise<R>,
): Promise<R> {
  const stop = new AbortController();
  const abort = () => stop.abort();
  signal.addEventListener("abort", abort);
  if (signal.aborted) stop.abort();
  const dog = watchdog(clock, idleMilliseconds, abort);
  try {
    const response = await open(transport, path, stop.signal, dog);
    onOpen?.();
    return await read(guarded(response.body, dog));
  } finally {
    dog.rest();
    signal.removeEventListener("abort", abort);
    stop.abort();
  }
}

async function open(transport: Transport, path: string, signal: AbortSignal, dog: Watchdog): Promise<ApiResponse> {
  dog.watch();
  try {
    const response = await transport({ path, signal });
    if (response.status !== 200) throw await errorOf(response);
    return response;
  } catch (error) {
    throw dog.bit() ? new BrokenResponseError(`no answer for ${dog.seconds} s`) : error;
  } finally {
    dog.rest();
  }
}

async function* guarded(body: AsyncIterable<Uint8Array>, dog: Watchdog): AsyncGenerator<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]();
  try {
    while (true) {
      const next = await nextOf(chunks, dog);
      if (next.done === true) return;
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
    const why = dog.bit() ? `nothing came for ${dog.seconds} s` : "the connection broke off";
    throw new BrokenResponseError(why, { cause: error });
  } finally {
    dog.rest();
  }
}
