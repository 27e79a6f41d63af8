import { errorText, sleep } from "@fairlead/base";
import type { OtherSubscription } from "../change.ts";
import type { Publisher } from "../publisher.ts";
import type { ResourceSpec } from "../resources.ts";
import { isAbsent } from "./absence.ts";
import type { Attempt } from "./attempt.ts";
import { afterFailure, atStart, type Cursor, failureOf } from "./cursor.ts";
import type { Encoding } from "./encoding.ts";
import { ApiError } from "./errors.ts";
import type { ReflectorPorts } from "./reflector-ports.ts";
import { RetryDelays } from "./retry-delays.ts";

/** How often a resource that the server doesn't have is asked for again. */
const ABSENT_RETRY = 600_000;
/** The same for a resource whose network may be installed any moment; stretched at random, as nodes start together. */
const OTHER_ABSENT_RETRY = 30_000;

/** What follows a request that failed: it is reported, and the next one waits. */
export class Recovery {
  readonly #ports: ReflectorPorts;
  readonly #spec: ResourceSpec;
  readonly #to: Publisher;
  readonly #encoding: Encoding;
  readonly #delays: RetryDelays;

  constructor(ports: ReflectorPorts, spec: ResourceSpec, to: Publisher, encoding: Encoding) {
    this.#ports = ports;
    this.#spec = spec;
    this.#to = to;
    this.#encoding = encoding;
    this.#delays = new RetryDelays(ports.clock, ports.random);
  }

  /**
   * Resolves when it is time for the next request, or `signal` aborts.
   *
   * @returns where to go on
   * @throws ConsumerError
   */
  async after(error: unknown, cursor: Cursor, attempt: Attempt, signal: AbortSignal): Promise<Cursor> {
    if (this.#spec.optional && error instanceof ApiError && error.code === 404) {
      return this.#absent(ABSENT_RETRY, signal);
    }
    const { other } = this.#spec;
    const unread = error instanceof ApiError && (error.code === 404 || error.code === 403);
    if (other !== undefined && unread) return this.#unread(other, error, cursor, signal);
    if (this.#encoding.fallBack(error)) return cursor;
    const failure = failureOf(error);
    const { mode } = cursor;
    // A watch that worked and was then cut off is resumed without waiting; if that fails, it is a failure.
    if (mode === "watch" && failure === "heavy" && attempt.worked()) return cursor;
    const noWatchList = failure === "refused" && mode === "watchList";
    if (!noWatchList && failure !== "expired") this.#failed(error);
    const delayMilliseconds = noWatchList ? 0 : this.#delays.after(failure, error);
    this.#ports.onReport({ type: "retry", resource: this.#spec.name, error: errorText(error), delayMilliseconds });
    await sleep(this.#ports.clock, delayMilliseconds, signal);
    return afterFailure(cursor, failure);
  }

  /** Of a resource that not every proxy follows, an answer says nothing of the server. */
  #failed(error: unknown): void {
    const { name, other } = this.#spec;
    other?.onState("unreachable");
    if (other === undefined || !(error instanceof ApiError)) this.#ports.reachability.failed(name, error);
  }

  /** It is not there, or may not be read. */
  async #unread(other: OtherSubscription, error: ApiError, cursor: Cursor, signal: AbortSignal): Promise<Cursor> {
    const { requester, takeToken, reachability, onReport, clock } = this.#ports;
    if (error.code !== 404) await takeToken(signal);
    if (await isAbsent(requester, other.resource, error, signal)) {
      return this.#absent(OTHER_ABSENT_RETRY * (1 + this.#ports.random() / 10), signal);
    }
    if (signal.aborted) return cursor;
    reachability.succeeded(this.#spec.name);
    other.onState("forbidden");
    const delayMilliseconds = this.#delays.afterRefusal();
    onReport({ type: "retry", resource: this.#spec.name, error: errorText(error), delayMilliseconds });
    await sleep(clock, delayMilliseconds, signal);
    return cursor;
  }

  async #absent(retry: number, signal: AbortSignal): Promise<Cursor> {
    // Before its list is empty and complete: an empty list says less.
    this.#spec.other?.onState("absent");
    await this.#to.beginList().end();
    this.#ports.reachability.succeeded(this.#spec.name);
    await sleep(this.#ports.clock, retry, signal);
    return atStart(this.#ports.firstMode);
  }
}
