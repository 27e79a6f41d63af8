import { type Clock, sleep } from "@fairlead/base";
import type { OtherSubscription } from "../change.ts";
import { ConsumerError, type ListSession, type Publisher } from "../publisher.ts";
import { errorText } from "../raw.ts";
import type { OnReport } from "../report.ts";
import type { ResourceSpec } from "../resources.ts";
import { isAbsent } from "./absence.ts";
import { backoff, knocking, sparing } from "./backoff.ts";
import {
  afterEvent,
  afterFailure,
  afterList,
  atStart,
  type Cursor,
  type Failure,
  failureOf,
  type ListMode,
} from "./cursor.ts";
import { Encoding } from "./encoding.ts";
import { ApiError, BrokenResponseError, ProtocolError } from "./errors.ts";
import type { BookmarkEvent, ObjectEvent } from "./events.ts";
import { nameless, readList } from "./list.ts";
import { listPath, pagePath, pageSize, watchListPath, watchPath } from "./query.ts";
import type { Reachability } from "./reachability.ts";
import { get, type Requester } from "./request.ts";
import type { TakeToken } from "./token-bucket.ts";
import { readEvents } from "./watch.ts";

export interface ReflectorPorts {
  readonly requester: Requester;
  readonly takeToken: TakeToken;
  readonly clock: Clock;
  readonly random: () => number;
  readonly reachability: Reachability;
  readonly onReport: OnReport;
  /** How lists begin before the server has refused that. */
  readonly firstMode: Cursor["firstMode"];
  /** Whether the server is asked for protobuf where the resource has it. */
  readonly protobuf: boolean;
}

/**
 * Bookmarks come once a minute. Where nothing came for this long although the server is alive (pulse.ts), it is another
 * one that answers: a load balancer's, beside the one that the watch is with.
 */
const watchIdle = 90_000;
/** The API server's own limit for a request that is no watch is 60 s. */
const listIdle = 65_000;
/** A watch that ends sooner, with nothing in it, has failed. */
const shortestWatch = 1_000;
/** How often a resource that the server doesn't have is asked for again. */
const absentRetry = 600_000;
/** The same for a resource whose network may be installed any moment; stretched at random, as nodes start together. */
const otherAbsentRetry = 30_000;

/**
 * Follows one resource: a complete list, then a watch, resumed where it ended and begun anew when it can't be.
 *
 * Own code, because the client library's Watch and informer (2.0) are not up to it: they hold every raw object, ask for
 * the list in one piece of text, drop lines they can't parse, know neither bookmarks nor WatchList nor Retry-After,
 * stop at the first error that isn't 410, and miss the objects that a failed list had.
 */
export class Reflector {
  readonly #ports: ReflectorPorts;
  readonly #spec: ResourceSpec;
  readonly #to: Publisher;
  readonly #encoding: Encoding;
  readonly #nextDelay: () => number;
  /** After attempts that no server has answered. */
  readonly #nextConnectDelay: () => number;
  /** Apart, since a server that answers has recovered: after its restart the old version is usually unknown to it. */
  readonly #nextRelistDelay: () => number;
  #cursor: Cursor;
  /**
   * Of the request under way: the clock when it was sent, whether the server said 200, whether it brought the cursor
   * on.
   */
  #attempt = { began: 0, opened: false, progressed: false };

  constructor(ports: ReflectorPorts, spec: ResourceSpec, to: Publisher) {
    this.#ports = ports;
    this.#spec = spec;
    this.#to = to;
    this.#encoding = new Encoding(spec, ports.protobuf, ports.onReport);
    this.#cursor = atStart(ports.firstMode);
    this.#nextDelay = backoff(ports.clock, ports.random, sparing);
    this.#nextConnectDelay = backoff(ports.clock, ports.random, knocking);
    this.#nextRelistDelay = backoff(ports.clock, ports.random, sparing);
  }

  /** Until `signal` aborts. @throws ConsumerError */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#ports.takeToken(signal);
        this.#attempt = { began: this.#ports.clock.monotonic(), opened: false, progressed: false };
        if (!signal.aborted) await this.#step(signal);
      } catch (error) {
        if (error instanceof ConsumerError) throw error;
        if (!signal.aborted) await this.#recover(error, signal);
      }
    }
  }

  #step(signal: AbortSignal): Promise<void> {
    switch (this.#cursor.mode) {
      case "watch":
        return this.#watch(signal);
      case "watchList":
        return this.#watchList(signal);
      case "list":
      case "chunks":
        return this.#list(this.#cursor.mode, signal);
    }
  }

  /** Full pages don't count against qps; what would keep asking for little or nothing does. */
  async #list(mode: "list" | "chunks", signal: AbortSignal): Promise<void> {
    const session = this.#to.beginList();
    const firstPath = mode === "list" ? listPath(this.#spec, this.#cursor.version) : pagePath(this.#spec, undefined);
    let before = 0;
    let head = await this.#page(firstPath, session, signal);
    while (head.next !== undefined) {
      const added = session.size - before;
      if (added === 0) throw new ProtocolError("a page of the list holds nothing new, and yet there is another");
      before = session.size;
      if (added < pageSize) await this.#ports.takeToken(signal);
      head = await this.#page(pagePath(this.#spec, head.next), session, signal);
    }
    await this.#listed(mode, session, head.resourceVersion);
  }

  #page(path: string, session: ListSession, signal: AbortSignal) {
    const request = { path, accept: this.#encoding.accept, idleMilliseconds: listIdle, signal };
    return get(this.#ports.requester, request, (chunks, type) =>
      readList(chunks, session, this.#encoding.listParser(type)),
    );
  }

  async #watchList(signal: AbortSignal): Promise<void> {
    const session = this.#to.beginList();
    let complete = false;
    await this.#events(watchListPath(this.#spec, this.#cursor.version, this.#timeoutSeconds()), signal, {
      object: (event) => (complete ? this.#event(event) : this.#apply(session, event)),
      tooMuch: ({ key }, why) => (complete ? this.#to : session).skip(key, why),
      bookmark: async (event) => {
        if (complete) return this.#advance(event);
        if (!event.endsInitialEvents) return;
        complete = true;
        await this.#listed("watchList", session, event.version);
      },
    });
    if (!complete) throw new BrokenResponseError("the watch ended before all objects were sent");
  }

  async #watch(signal: AbortSignal): Promise<void> {
    await this.#events(watchPath(this.#spec, this.#cursor.version ?? "", this.#timeoutSeconds()), signal, {
      object: (event) => this.#event(event),
      tooMuch: ({ key, version }, why) => {
        this.#to.skip(key, why);
        if (version !== undefined) this.#advance({ version });
      },
      bookmark: async (event) => this.#advance(event),
    });
    if (!this.#worked()) throw new Error("the watch ended as soon as it began");
  }

  #events(path: string, signal: AbortSignal, sink: Parameters<typeof readEvents>[1]): Promise<void> {
    const onOpen = () => {
      this.#attempt.opened = true;
      if (this.#cursor.mode !== "watch") return;
      this.#ports.reachability.succeeded(this.#spec.name);
      this.#spec.other?.onState("listed");
    };
    const request = { path, accept: this.#encoding.accept, idleMilliseconds: watchIdle, signal, onOpen };
    return get(this.#ports.requester, request, (chunks, type) => readEvents(chunks, sink, this.#encoding.events(type)));
  }

  async #event(event: ObjectEvent): Promise<void> {
    await this.#apply(this.#to, event);
    this.#advance(event);
  }

  async #apply(
    to: Pick<Publisher, "upsert" | "remove" | "skip">,
    { type, key, version, object }: ObjectEvent,
  ): Promise<void> {
    if (key === undefined) return to.skip(undefined, nameless);
    await (type === "DELETED" ? to.remove(key) : to.upsert(key, version, object));
  }

  #advance({ version }: Pick<BookmarkEvent, "version">): void {
    this.#attempt.progressed = true;
    this.#cursor = afterEvent(this.#cursor, version);
  }

  async #listed(how: ListMode, session: ListSession, version: string): Promise<void> {
    const objects = session.size;
    await session.end();
    this.#cursor = afterList(this.#cursor, version);
    this.#attempt.progressed = true;
    const { reachability, onReport } = this.#ports;
    reachability.succeeded(this.#spec.name);
    this.#spec.other?.onState("listed");
    onReport({ type: "listed", resource: this.#spec.name, how, objects, milliseconds: this.#elapsed() });
  }

  #elapsed(): number {
    return this.#ports.clock.monotonic() - this.#attempt.began;
  }

  /** The watch under way did its work, for a while at least. */
  #worked(): boolean {
    const { opened, progressed } = this.#attempt;
    return opened && (progressed || this.#elapsed() >= shortestWatch);
  }

  /** 5 to 10 minutes, at random, so that the watches of all nodes don't end together. */
  #timeoutSeconds(): number {
    return Math.floor(300 * (1 + this.#ports.random()));
  }

  async #recover(error: unknown, signal: AbortSignal): Promise<void> {
    if (this.#spec.optional && error instanceof ApiError && error.code === 404) {
      return this.#absent(absentRetry, signal);
    }
    const { other } = this.#spec;
    const unread = error instanceof ApiError && (error.code === 404 || error.code === 403);
    if (other !== undefined && unread) return this.#unread(other, error, signal);
    if (this.#encoding.fallBack(error)) return;
    const failure = failureOf(error);
    const { mode } = this.#cursor;
    // A watch that worked and was then cut off is resumed without waiting; if that fails, it is a failure.
    if (mode === "watch" && failure === "heavy" && this.#worked()) return;
    this.#cursor = afterFailure(this.#cursor, failure);
    const noWatchList = failure === "refused" && mode === "watchList";
    if (!noWatchList && failure !== "expired") this.#failed(error);
    const delayMilliseconds = noWatchList ? 0 : Math.max(this.#delayAfter(failure, error), askedDelay(error));
    this.#ports.onReport({ type: "retry", resource: this.#spec.name, error: errorText(error), delayMilliseconds });
    await sleep(this.#ports.clock, delayMilliseconds, signal);
  }

  #delayAfter(failure: Failure, error: unknown): number {
    if (failure === "expired" || failure === "ahead") return this.#nextRelistDelay();
    return failure === "later" && !(error instanceof ApiError) ? this.#nextConnectDelay() : this.#nextDelay();
  }

  /** Of a resource that not every proxy follows, an answer says nothing of the server. */
  #failed(error: unknown): void {
    const { name, other } = this.#spec;
    other?.onState("unreachable");
    if (other === undefined || !(error instanceof ApiError)) this.#ports.reachability.failed(name, error);
  }

  /** It is not there, or may not be read. */
  async #unread(other: OtherSubscription, error: ApiError, signal: AbortSignal): Promise<void> {
    const { requester, takeToken, reachability, onReport, clock } = this.#ports;
    if (error.code !== 404) await takeToken(signal);
    if (await isAbsent(requester, other.resource, error, signal)) {
      await this.#absent(otherAbsentRetry * (1 + this.#ports.random() / 10), signal);
      return;
    }
    if (signal.aborted) return;
    reachability.succeeded(this.#spec.name);
    other.onState("forbidden");
    const delayMilliseconds = this.#nextDelay();
    onReport({ type: "retry", resource: this.#spec.name, error: errorText(error), delayMilliseconds });
    await sleep(clock, delayMilliseconds, signal);
  }

  async #absent(retry: number, signal: AbortSignal): Promise<void> {
    await this.#to.beginList().end();
    this.#cursor = atStart(this.#ports.firstMode);
    this.#ports.reachability.succeeded(this.#spec.name);
    this.#spec.other?.onState("absent");
    await sleep(this.#ports.clock, retry, signal);
  }
}

/** Retry-After, in milliseconds. */
function askedDelay(error: unknown): number {
  return error instanceof ApiError ? (error.retryAfterMilliseconds ?? 0) : 0;
}
