/** What happens when a list or a watch fails: which request comes next, and after what delay. */

import { type Clock, errorText, isObject, objectsAt, sleep, textAt } from "@fairlead/base";
import type { OtherResource, OtherSubscription } from "../change.ts";
import type { Publisher } from "../publisher.ts";
import type { OnReport } from "../report.ts";
import { discoveryPath, type ResourceSpec } from "../resources.ts";
import type { Encoding } from "./encoding.ts";
import { ApiError, BrokenResponseError, beginningOf, ProtocolError } from "./errors.ts";
import type { TakeToken } from "./http.ts";
import { get, type Reachability, type Requester, type Turns } from "./request.ts";

/** How often a resource that the server doesn't have is asked for again. */
const ABSENT_RETRY = 600_000;

/**
 * - expired: the version is too old for the server.
 * - ahead: the server is behind the version, as after a restored etcd.
 * - refused: it doesn't take these parameters.
 * - heavy: the answer was too much for it, for something between, or for the time there is.
 * - confused: what came is not the protocol.
 * - later: no connection, no permission, too many requests: the same request may work later.
 */
type Failure = "expired" | "ahead" | "refused" | "heavy" | "confused" | "later";

/** A turn whose request has no answer for so long passes to the next loop: that may meet another server. */
const TURN_LASTS = 10_000;

/** The same for a resource whose network may be installed any moment; stretched at random, as nodes start together. */
const OTHER_ABSENT_RETRY = 30_000;

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

/** What a reflector asks of the server with, and what it reports to. */
export interface ReflectorPorts {
  readonly requester: Requester;
  readonly takeToken: TakeToken;
  readonly clock: Clock;
  readonly random: () => number;
  readonly reachability: Reachability;
  /** Which loop asks a server that gives no answer, or asks to come later. */
  readonly turns: Turns;
  /** How long that one waits. */
  readonly turnDelays: RetryDelays;
  readonly onReport: OnReport;
  /** How lists begin before the server has refused that. */
  readonly firstMode: Cursor["firstMode"];
  /** Whether the server is asked for protobuf where the resource has it. */
  readonly protobuf: boolean;
}

/** Ways to get all objects; each is tried when the one before it does not work with this server. */
export type ListMode = "watchList" | "list" | "chunks";

/** Where a resource's loop stands: what to ask for next. A value, so that each step can be logged and tested. */
export interface Cursor {
  readonly mode: ListMode | "watch";
  /** Last resourceVersion seen; undefined: none yet; "": the server doesn't know it anymore, ask for the latest. */
  readonly version: string | undefined;
  /** In a row, in this mode. */
  readonly failures: number;
  /** How a new list begins: "list" once the server has refused WatchList. */
  readonly firstMode: ListMode;
}

/** @param firstMode how the first list begins */
export function atStart(firstMode: Cursor["firstMode"]): Cursor {
  return { mode: firstMode, version: undefined, failures: 0, firstMode };
}

/** A complete list is in: watch from its version on. */
export function afterList(cursor: Cursor, version: string): Cursor {
  return { ...cursor, mode: "watch", version, failures: 0 };
}

/** The watch has come to `version`. */
export function afterEvent(cursor: Cursor, version: string): Cursor {
  return { ...cursor, version, failures: 0 };
}

/** A watch that ends sooner, with nothing in it, has failed. */
const SHORTEST_WATCH = 1_000;

/** A request under way. */
export class Attempt {
  /** The server said 200. */
  opened = false;
  /** It brought the cursor on. */
  progressed = false;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #began: number;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
    this.#began = clock.monotonic();
  }

  /** Milliseconds since it was sent. */
  elapsed(): number {
    return this.#clock.monotonic() - this.#began;
  }

  /** As a watch it did its work, for a while at least. */
  worked(): boolean {
    return this.opened && (this.progressed || this.elapsed() >= SHORTEST_WATCH);
  }
}

/** Milliseconds: the first wait, and what it is doubled up to. */
interface BackoffRange {
  readonly first: number;
  readonly longest: number;
}

/**
 * Where nothing answers, an attempt costs little, and every second counts once the server is back: asked every 5
 * to 10 s, as kubelet asks for its lease every 10 s. client-go would wait for up to a minute here.
 */
const CONNECT_RANGE: BackoffRange = { first: 800, longest: 5_000 };

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

/** Between attempts at a server that answers, as in client-go's reflector. */
export const CLIENT_GO_RANGE: BackoffRange = { first: 800, longest: 30_000 };

/** Without a failure for this long the next one starts from the beginning. */
const HEALTHY_AFTER = 120_000;

/** Gives the milliseconds to wait after a failure; each is stretched by up to as much again. */
export function backoff(
  clock: Pick<Clock, "monotonic">,
  random: () => number,
  { first, longest }: BackoffRange,
): () => number {
  let next = first;
  let last = Number.NEGATIVE_INFINITY;
  return () => {
    if (clock.monotonic() - last > HEALTHY_AFTER) next = first;
    last = clock.monotonic();
    const delay = next * (1 + random());
    next = Math.min(next * 2, longest);
    return delay;
  };
}

/** No connection, or a server with too much to do: another resource's request would find the same. */
function concernsAll(failure: Failure, error: unknown): boolean {
  return failure === "later" && (!(error instanceof ApiError) || BUSY_OR_AWAY.has(error.code));
}

const BUSY_OR_AWAY: ReadonlySet<number> = new Set([429, 502, 503]);

const LATEST = "";

function failureOf(error: unknown): Failure {
  if (error instanceof BrokenResponseError) return "heavy";
  if (error instanceof ProtocolError) return "confused";
  if (!(error instanceof ApiError)) return "later";
  if (error.expired) return "expired";
  if (error.versionTooLarge) return "ahead";
  return BY_CODE.get(error.code) ?? "later";
}

const BY_CODE: ReadonlyMap<number, Failure> = new Map([
  [400, "refused"],
  [405, "refused"],
  [406, "refused"],
  [422, "refused"],
  [501, "refused"],
  [413, "heavy"],
  [504, "heavy"],
  [500, "confused"],
]);

/** Failures of this many attempts in a row that another way may not have. */
const TRIES = { watchList: 2, list: 2, chunks: 2, watch: 3 } as const;

/** What to ask for after a failure; how long to wait before is not decided here. */
function afterFailure(cursor: Cursor, failure: Failure): Cursor {
  if (failure === "later") return cursor;
  return cursor.mode === "watch" ? afterFailedWatch(cursor, failure) : afterFailedList(cursor, cursor.mode, failure);
}

function afterFailedWatch(cursor: Cursor, failure: Failure): Cursor {
  const failures = cursor.failures + 1;
  const relist = { ...cursor, mode: cursor.firstMode, failures: 0 };
  if (failure === "ahead" || failure === "refused") return { ...relist, version: LATEST };
  // A list not older than the version is what client-go asks for after 410, too: time never goes backwards.
  return failure === "expired" || failures >= TRIES.watch ? relist : { ...cursor, failures };
}

function afterFailedList(cursor: Cursor, mode: ListMode, failure: Failure): Cursor {
  const failures = cursor.failures + 1;
  const versionAtFault = failure === "expired" || failure === "ahead";
  if (versionAtFault && cursor.version !== LATEST) return { ...cursor, version: LATEST, failures };
  if (failure === "refused" && mode === "watchList") {
    return { ...cursor, mode: "list", failures: 0, firstMode: "list" };
  }
  if (failure !== "refused" && failures < TRIES[mode]) return { ...cursor, failures };
  return { ...cursor, mode: nextMode(cursor, mode), failures: 0 };
}

function nextMode({ firstMode }: Cursor, mode: ListMode): ListMode {
  switch (mode) {
    case "watchList":
      return "list";
    case "list":
      return "chunks";
    case "chunks":
      return firstMode;
  }
}

const IDLE_MS = 65_000;

/**
 * Whether a resource that could not be read is not there at all. A user without the right to read it gets 403 also for
 * one that does not exist; every authenticated user may list the resources.
 *
 * @param error what the server answered
 */
async function isAbsent(
  requester: Requester,
  resource: OtherResource,
  error: ApiError,
  signal: AbortSignal,
): Promise<boolean> {
  if (error.code === 404) return true;
  try {
    const request = { path: discoveryPath(resource), idleMilliseconds: IDLE_MS, signal };
    const names = resourcesIn(await get(requester, request, beginningOf));
    return names !== undefined && !names.includes(resource.plural);
  } catch (failure) {
    return failure instanceof ApiError && failure.code === 404;
  }
}

/** metav1.APIResourceList; undefined: it cannot be read. */
function resourcesIn(text: string): readonly (string | undefined)[] | undefined {
  try {
    const list: unknown = JSON.parse(text);
    return isObject(list) ? objectsAt(list, "resources").map((one) => textAt(one, "name")) : undefined;
  } catch {
    return undefined;
  }
}

/** How long the server has asked to wait (Retry-After), in milliseconds; 0: it has not. */
function retryAfterOf(error: unknown): number {
  return error instanceof ApiError ? (error.retryAfterMilliseconds ?? 0) : 0;
}
