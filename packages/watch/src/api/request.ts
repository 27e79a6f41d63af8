/**
 * One GET at the API server with the signs of life that it needs: idle and silent connections end, and outages are
 * reported.
 */

import { type Clock, errorText } from "@fairlead/base";
import type { ResourceName } from "../change.ts";
import { MalformedError } from "../protobuf-messages.ts";
import type { OnReport, RequestProblem } from "../report.ts";
import { ApiError, BrokenResponseError, errorOf, ProtocolError, SilentServerError } from "./errors.ts";
import type { ApiRequest, ApiResponse, Transport } from "./http.ts";

/** Notices a server that keeps its connections and says nothing, as one does whose process stands still. */
interface Pulse {
  heard(): void;
  /**
   * While a request waits for the server and nothing came, the server is asked for a sign of life.
   *
   * @param silent called when it has given none
   * @returns ends the waiting
   */
  wait(silent: () => void): () => void;
}

export interface Requester {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly pulse: Pulse;
}

interface RequestOptions {
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

/**
 * Longer than a healthy API server stays silent: each watch has a bookmark once a minute. client-go sends a ping after
 * 30 s (ReadIdleTimeout), which is no request to the API server; a request of each node twice a minute would be most of
 * the requests of nodes.
 */
const QUIET_FOR = 70_000;

/** Answered without a look at etcd, and allowed to every account (system:public-info-viewer). */
const ASKED_FOR = "/version";

/** For its answer, as client-go has it (PingTimeout). */
const ANSWER_WITHIN = 15_000;

/**
 * HTTP/1.1 has no ping, so another request takes its place: whatever is answered, be it a refusal, is a sign of life.
 * An error in sending it says nothing of the connections that there are; TCP keepalive looks after those.
 */
export function pulse(transport: Transport, clock: Clock): Pulse {
  const waiting = new Set<() => void>();
  let heardAt = clock.monotonic();
  let cancel = () => {};

  const heard = () => {
    heardAt = clock.monotonic();
  };
  const check = () => {
    const quiet = clock.monotonic() - heardAt;
    if (quiet < QUIET_FOR) cancel = clock.after(QUIET_FOR - quiet, check);
    else cancel = ask();
  };
  const ask = () => {
    const asked = clock.monotonic();
    const stop = new AbortController();
    const answered = async () => {
      const { body } = await transport({ path: ASKED_FOR, signal: stop.signal });
      heard();
      // Read to its end, so that the connection can be used again.
      for await (const _ of body);
    };
    const cancelTimer = clock.after(ANSWER_WITHIN, () => {
      stop.abort();
      // A byte on any of the connections is a sign, too.
      if (heardAt > asked) check();
      else for (const silent of [...waiting]) silent();
    });
    const done = () => {
      if (stop.signal.aborted) return;
      cancelTimer();
      heard();
      check();
    };
    answered().then(done, done);
    return () => {
      cancelTimer();
      stop.abort();
    };
  };
  const wait = (silent: () => void) => {
    waiting.add(silent);
    if (waiting.size === 1) {
      heard();
      check();
    }
    return () => {
      if (waiting.delete(silent) && waiting.size === 0) cancel();
    };
  };
  return { heard, wait };
}

/** Collects what the resources' loops report of their requests into one report a minute. */
export interface Reachability {
  succeeded(resource: ResourceName): void;
  failed(resource: ResourceName, error: unknown): void;
  stop(): void;
}

const FURTHEST_FIRST = ["unreadable", "refused"] as const satisfies readonly RequestProblem[];

const REPORT_EVERY = 60_000;

/** @param server base URL of the API server */
export function reachability(clock: Clock, server: string, onReport: OnReport): Reachability {
  const address = new URL(server).hostname.replace(/^\[|\]$/g, "");
  const failing = new Map<ResourceName, { readonly error: string; readonly problem: RequestProblem }>();
  let since = 0;
  let cancel = () => {};

  const report = () => {
    const all = [...failing.values()];
    const error = [...new Set(all.map((one) => one.error))].join("; ");
    const problem = FURTHEST_FIRST.find((one) => all.some((other) => other.problem === one)) ?? "unreachable";
    const milliseconds = clock.monotonic() - since;
    onReport({ type: "failing", problem, server, address, milliseconds, error, resources: [...failing.keys()] });
    cancel = clock.after(REPORT_EVERY, report);
  };
  return {
    failed: (resource, error) => {
      const began = failing.size === 0;
      failing.set(resource, { error: errorText(error), problem: problemOf(error) });
      if (!began) return;
      since = clock.monotonic();
      report();
    },
    succeeded: (resource) => {
      if (!failing.delete(resource) || failing.size > 0) return;
      cancel();
      onReport({ type: "recovered", server, milliseconds: clock.monotonic() - since });
    },
    stop: () => cancel(),
  };
}

type Loop = object;

/**
 * The turn to ask a server that gives no answer, or asks to come later. One loop has it and tries for all; the others
 * wait. Thousands of nodes that lose their API server together ask it a third as often, and find it as soon.
 */
export class Turns {
  #holder: Loop | undefined;
  readonly #waiting: { readonly loop: Loop; readonly go: () => void }[] = [];

  /** @returns whether the loop has the turn now: no other one has it */
  claim(loop: Loop): boolean {
    this.#holder ??= loop;
    return this.#holder === loop;
  }

  /** Claims the turn, or waits until it comes round or `signal` aborts. */
  async take(loop: Loop, signal: AbortSignal): Promise<void> {
    if (!this.claim(loop) && !signal.aborted) await this.#wait(loop, signal);
  }

  /** Ends the loop's turn, if it has it; the one that waits longest is next. */
  pass(loop: Loop): void {
    if (this.#holder !== loop) return;
    const next = this.#waiting.shift();
    this.#holder = next?.loop;
    next?.go();
  }

  #wait(loop: Loop, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const leave = () => {
        const at = this.#waiting.indexOf(entry);
        if (at >= 0) this.#waiting.splice(at, 1);
        resolve();
      };
      const go = () => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const entry = { loop, go };
      this.#waiting.push(entry);
      signal.addEventListener("abort", leave, { once: true });
    });
  }
}

const silence = new SilentServerError(
  `the server does not respond: no data for ${QUIET_FOR / 1000} s, and no answer to a test request within ${ANSWER_WITHIN / 1000} s`,
);

/** Ends a request when it is left watching for too long at a stretch, or when it is asked to. */
interface Watchdog {
  readonly seconds: number;
  watch(): void;
  rest(): void;
  /** Ends the request because of `error`. */
  bite(error: Error): void;
  /** The error that the request was ended for; undefined: it was not. @param idle what to say of too long a wait */
  why(idle: string): Error | undefined;
}

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

/** @param end ends the request */
function watchdog(clock: Clock, milliseconds: number, end: () => void): Watchdog {
  let cancel: (() => void) | undefined;
  let bitten: Error | "idle" | undefined;
  const rest = () => {
    cancel?.();
    cancel = undefined;
  };
  const biteFor = (reason: Error | "idle") => {
    bitten ??= reason;
    end();
  };
  const watch = () => {
    rest();
    cancel = clock.after(milliseconds, () => biteFor("idle"));
  };
  const why = (idle: string) => (bitten === "idle" ? new BrokenResponseError(idle) : bitten);
  return { seconds: milliseconds / 1000, watch, rest, bite: biteFor, why };
}

function problemOf(error: unknown): RequestProblem {
  if (error instanceof ApiError) return "refused";
  return error instanceof ProtocolError || error instanceof MalformedError ? "unreadable" : "unreachable";
}
