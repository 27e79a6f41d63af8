import type { Clock } from "@fairlead/base";
import { backoff, CLIENT_GO_RANGE, CONNECT_RANGE } from "./backoff.ts";
import type { Failure } from "./cursor.ts";
import { ApiError } from "./errors.ts";

/** How long the server has asked to wait (Retry-After), in milliseconds; 0: it has not. */
export function retryAfterOf(error: unknown): number {
  return error instanceof ApiError ? (error.retryAfterMilliseconds ?? 0) : 0;
}

/** How long to wait after a failure, in milliseconds. */
export class RetryDelays {
  readonly #next: () => number;
  /** After attempts that no server has answered. */
  readonly #nextConnect: () => number;
  /** Apart, since a server that answers has recovered: after its restart the old version is usually unknown to it. */
  readonly #nextRelist: () => number;

  constructor(clock: Pick<Clock, "monotonic">, random: () => number) {
    this.#next = backoff(clock, random, CLIENT_GO_RANGE);
    this.#nextConnect = backoff(clock, random, CONNECT_RANGE);
    this.#nextRelist = backoff(clock, random, CLIENT_GO_RANGE);
  }

  /** At least what the server asks for (Retry-After). */
  after(failure: Failure, error: unknown): number {
    return Math.max(this.#delay(failure, error), retryAfterOf(error));
  }

  /** After an answer that will not be another one soon. */
  afterRefusal(): number {
    return this.#next();
  }

  #delay(failure: Failure, error: unknown): number {
    if (failure === "expired" || failure === "ahead") return this.#nextRelist();
    return failure === "later" && !(error instanceof ApiError) ? this.#nextConnect() : this.#next();
  }
}
