import { errorText, sleep } from "@fairlead/base";
import type { OtherSubscription } from "../change.ts";
import type { Publisher } from "../publisher.ts";
import type { ResourceSpec } from "../resources.ts";
import { isAbsent } from "./absence.ts";
import type { Attempt } from "./attempt.ts";
import { afterFailure, atStart, type Cursor, type Failure, failureOf } from "./cursor.ts";
import type { Encoding } from "./encoding.ts";
import { ApiError } from "./errors.ts";
import type { ReflectorPorts } from "./reflector-ports.ts";
import { RetryDelays, retryAfterOf } from "./retry-delays.ts";

/** How often a resource that the server doesn't have is asked for again. */
const ABSENT_RETRY = 600_000;
/** The same for a resource whose network may be installed any moment; stretched at random, as nodes start together. */
const OTHER_ABSENT_RETRY = 30_000;

/** A turn whose request has no answer for so long passes to the next loop: that may meet another server. */
const TURN_LASTS = 10_000;

/** What follows a request that failed: it is reported, and the next one waits. */
export class Recovery {
  readonly #ports: ReflectorPorts;
  readonly #spec: ResourceSpec;
  readonly #to: Publisher;
  readonly #encoding: Encoding;
  readonly #delays: RetryDelays;
  /** Ends the watch over the turn. */
  #endTurn = () => {};

  constructor(ports: ReflectorPorts, spec: ResourceSpec, to: Publisher, encoding: Encoding) {
    this.#ports = ports;
    this.#spec = spec;
    this.#to = to;
    this.#encoding = encoding;
    this.#delays = new RetryDelays(ports.clock, ports.random);
  }

  /** The server has answered as it should, or is not asked again: others may try. */
  succeeded(): void {
    this.#endTurn();
    this.#ports.turns.pass(this);
  }

  /**
   * Resolves when it is time for the next request, or `signal` aborts.
   *
   * @returns where to go on
   * @throws ConsumerError
   */
  async after(error: unknown, cursor: Cursor, attempt: Attempt, signal: AbortSignal): Promise<Cursor> {
    const { other } = this.#spec;
    const unread = error instanceof ApiError && (error.code === 404 || error.code === 403);
    // The server can be asked, and what this resource waits for does not concern the others.
    if (unread) this.succeeded();
    if (this.#spec.optional && error instanceof ApiError && error.code === 404) {
      return this.#absent(ABSENT_RETRY, signal);
    }
    if (other !== undefined && unread) return this.#unread(other, error, cursor, signal);
    if (this.#encoding.fallBack(error)) return cursor;
    const failure = failureOf(error);
    const { mode } = cursor;
    // A watch that worked and was then cut off is resumed without waiting; if that fails, it is a failure.
    if (mode === "watch" && failure === "heavy" && attempt.worked()) return cursor;
    await this.#waitAfter(failure, error, failure === "refused" && mode === "watchList", signal);
    return afterFailure(cursor, failure);
  }

  async #waitAfter(failure: Failure, error: unknown, noWatchList: boolean, signal: AbortSignal): Promise<void> {
    if (!noWatchList && failure !== "expired") this.#failed(error);
    if (concernsAll(failure, error)) return this.#waitForTurn(failure, error, signal);
    // A list follows in the same turn; anything else is this resource's own trouble.
    if (failure !== "expired" && !noWatchList) this.succeeded();
    await this.#wait(noWatchList ? 0 : this.#delays.after(failure, error), error, signal);
  }

  /** The loop that is the first to fail waits and tries again, in turns with those that fail after it. */
  async #waitForTurn(failure: Failure, error: unknown, signal: AbortSignal): Promise<void> {
    const { turns, turnDelays, clock } = this.#ports;
    this.#endTurn();
    if (turns.claim(this)) {
      await this.#wait(turnDelays.after(failure, error), error, signal);
      turns.pass(this);
    } else {
      // The server may have asked this loop to wait for longer than the one that tries meanwhile.
      await sleep(clock, retryAfterOf(error), signal);
    }
    await turns.take(this, signal);
    this.#endTurn = clock.after(TURN_LASTS, () => turns.pass(this));
  }

  async #wait(delayMilliseconds: number, error: unknown, signal: AbortSignal): Promise<void> {
    const { clock, onReport } = this.#ports;
    onReport({ type: "retry", resource: this.#spec.name, error: errorText(error), delayMilliseconds });
    await sleep(clock, delayMilliseconds, signal);
  }

  /** Of a resource that not every proxy follows, an answer says nothing of the server. */
  #failed(error: unknown): void {
    const { name, other } = this.#spec;
    other?.onState("unreachable");
    if (other === undefined || !(error instanceof ApiError)) this.#ports.reachability.failed(name, error);
  }

  /** It is not there, or may not be read. */
  async #unread(other: OtherSubscription, error: ApiError, cursor: Cursor, signal: AbortSignal): Promise<Cursor> {
    const { requester, takeToken, reachability } = this.#ports;
    if (error.code !== 404) await takeToken(signal);
    if (await isAbsent(requester, other.resource, error, signal)) {
      return this.#absent(OTHER_ABSENT_RETRY * (1 + this.#ports.random() / 10), signal);
    }
    if (signal.aborted) return cursor;
    reachability.succeeded(this.#spec.name);
    other.onState("forbidden");
    await this.#wait(this.#delays.afterRefusal(), error, signal);
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

/** No connection, or a server with too much to do: another resource's request would find the same. */
function concernsAll(failure: Failure, error: unknown): boolean {
  return failure === "later" && (!(error instanceof ApiError) || BUSY_OR_AWAY.has(error.code));
}

const BUSY_OR_AWAY: ReadonlySet<number> = new Set([429, 502, 503]);
