/**
 * Lists and watches one resource for as long as it runs, as client-go's reflector does: what is requested and what is
 * done with the answer. What follows a failure is in recovery.ts.
 */

import { slices, type Yield } from "@fairlead/base";
import { ConsumerError, type ListSession, type Publisher } from "../publisher.ts";
import { objectKeyOf, type ResourceSpec, resourceVersionOf } from "../resources.ts";
import { Encoding } from "./encoding.ts";
import { BrokenResponseError, ProtocolError } from "./errors.ts";
import { type BookmarkEvent, type ObjectEvent, readEvents } from "./events.ts";
import { type ListHead, type ListItem, type ListParser, listParser } from "./lists.ts";
import {
  Attempt,
  afterEvent,
  afterList,
  atStart,
  type Cursor,
  type ListMode,
  Recovery,
  type ReflectorPorts,
} from "./recovery.ts";
import { get } from "./request.ts";

/**
 * Bookmarks come once a minute. Where nothing came for this long although the server is alive (pulse.ts), it is another
 * one that answers: a load balancer's, alongside the one that the watch is with.
 */
const WATCH_IDLE = 90_000;

/** Said of an object that nothing can be called by. */
const NAMELESS = "metadata.name is missing";

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
  readonly #recovery: Recovery;
  #cursor: Cursor;
  #attempt: Attempt;

  constructor(ports: ReflectorPorts, spec: ResourceSpec, to: Publisher) {
    this.#ports = ports;
    this.#spec = spec;
    this.#to = to;
    this.#cursor = atStart(ports.firstMode);
    this.#attempt = new Attempt(ports.clock);
    this.#encoding = new Encoding(spec, ports.protobuf, ports.onReport);
    this.#recovery = new Recovery(ports, spec, to, this.#encoding);
  }

  /** Until `signal` aborts. @throws ConsumerError */
  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#loop(signal);
    } finally {
      this.#recovery.succeeded();
    }
  }

  async #loop(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#ports.takeToken(signal);
        this.#attempt = new Attempt(this.#ports.clock);
        if (!signal.aborted) await this.#step(signal);
      } catch (error) {
        if (error instanceof ConsumerError) throw error;
        if (signal.aborted) return;
        this.#cursor = await this.#recovery.after(error, this.#cursor, this.#attempt, signal);
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

  async #list(mode: "list" | "chunks", signal: AbortSignal): Promise<void> {
    const session = this.#to.beginList();
    const request = { spec: this.#spec, encoding: this.#encoding, mode, version: this.#cursor.version };
    await this.#listed(mode, session, await listPages(this.#ports, request, session, signal));
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
    if (!this.#attempt.worked()) throw new Error("the watch ended right after its start");
  }

  #events(path: string, signal: AbortSignal, sink: Parameters<typeof readEvents>[1]): Promise<void> {
    const onOpen = () => {
      this.#attempt.opened = true;
      this.#recovery.succeeded();
      if (this.#cursor.mode !== "watch") return;
      this.#ports.reachability.succeeded(this.#spec.name);
      this.#spec.other?.onState("listed");
    };
    const request = { path, accept: this.#encoding.accept, idleMilliseconds: WATCH_IDLE, signal, onOpen };
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
    if (key === undefined) return to.skip(undefined, NAMELESS);
    await (type === "DELETED" ? to.remove(key) : to.upsert(key, version, object));
  }

  #advance({ version }: Pick<BookmarkEvent, "version">): void {
    this.#attempt.progressed = true;
    this.#cursor = afterEvent(this.#cursor, version);
  }

  async #listed(how: ListMode, session: ListSession, version: string): Promise<void> {
    const objects = session.size;
    this.#recovery.succeeded();
    await session.end();
    this.#cursor = afterList(this.#cursor, version);
    this.#attempt.progressed = true;
    const { reachability, onReport } = this.#ports;
    reachability.succeeded(this.#spec.name);
    this.#spec.other?.onState("listed");
    onReport({ type: "listed", resource: this.#spec.name, how, objects, milliseconds: this.#attempt.elapsed() });
  }

  /** 5 to 10 minutes, at random, so that the watches of all nodes don't end together. */
  #timeoutSeconds(): number {
    return Math.floor(300 * (1 + this.#ports.random()));
  }
}

/** The API server's own limit for a request that is no watch is 60 s. */
const LIST_IDLE = 65_000;

interface ListRequest {
  readonly spec: ResourceSpec;
  readonly encoding: Encoding;
  /** As one answer, or in pages. */
  readonly mode: "list" | "chunks";
  /** The resource version to ask for, of a list that is one answer; undefined: the newest. */
  readonly version: string | undefined;
}

/** Objects a page, as client-go asks for. */
const PAGE_SIZE = 500;

/**
 * Reads a list into the session, page by page. Full pages don't count against qps; what would keep asking for little or
 * nothing does.
 *
 * @returns its resource version
 * @throws ProtocolError when a page brings nothing new and names another one
 */
async function listPages(
  { requester, takeToken }: Pick<ReflectorPorts, "requester" | "takeToken">,
  { spec, encoding, mode, version }: ListRequest,
  session: ListSession,
  signal: AbortSignal,
): Promise<string> {
  const page = (path: string) => {
    const request = { path, accept: encoding.accept, idleMilliseconds: LIST_IDLE, signal };
    return get(requester, request, (chunks, type) => readList(chunks, session, encoding.listParser(type)));
  };
  let before = 0;
  let head = await page(mode === "list" ? listPath(spec, version) : pagePath(spec, undefined));
  while (head.next !== undefined) {
    const added = session.size - before;
    if (added === 0) throw new ProtocolError("a page of the list has no new objects but a continue token");
    before = session.size;
    if (added < PAGE_SIZE) await takeToken(signal);
    head = await page(pagePath(spec, head.next));
  }
  return head.resourceVersion;
}

/** Reads one response of a list, item by item as it arrives. */
async function readList(
  chunks: AsyncIterable<Uint8Array>,
  session: ListSession,
  parser: ListParser = listParser(),
): Promise<ListHead> {
  const yielding = slices();
  for await (const chunk of chunks) {
    for (const item of parser.write(chunk)) await give(item, session, yielding);
    await yielding();
  }
  return parser.end();
}

async function give(item: ListItem, session: ListSession, yielding: Yield): Promise<void> {
  if ("unreadable" in item) session.skip(item.identity.key, item.unreadable);
  else {
    const key = objectKeyOf(item.raw);
    if (key === undefined) session.skip(undefined, NAMELESS);
    else await session.upsert(key, resourceVersionOf(item.raw) ?? "", item.raw);
  }
  await yielding();
}

function watchPath(spec: ResourceSpec, version: string, timeoutSeconds: number): string {
  return path(spec, {
    watch: "true",
    resourceVersion: version,
    allowWatchBookmarks: "true",
    timeoutSeconds: String(timeoutSeconds),
  });
}

/**
 * A watch that begins with all objects (KEP-3157).
 *
 * @param version not older than this; undefined or "": the latest
 */
function watchListPath(spec: ResourceSpec, version: string | undefined, timeoutSeconds: number): string {
  return path(spec, {
    watch: "true",
    sendInitialEvents: "true",
    resourceVersionMatch: "NotOlderThan",
    resourceVersion: version ?? "",
    allowWatchBookmarks: "true",
    timeoutSeconds: String(timeoutSeconds),
  });
}

/**
 * The whole list at once, from the API server's cache where it may be: it ignores a limit there.
 *
 * @param version not older than this; undefined: whatever the cache has; "": the latest
 */
function listPath(spec: ResourceSpec, version: string | undefined): string {
  return path(spec, { resourceVersion: version ?? "0" });
}

function pagePath(spec: ResourceSpec, next: string | undefined): string {
  return path(spec, { limit: String(PAGE_SIZE), ...(next === undefined ? {} : { continue: next }) });
}

function path(spec: ResourceSpec, query: Record<string, string>): string {
  const parameters = new URLSearchParams({
    ...(spec.labelSelector === undefined ? {} : { labelSelector: spec.labelSelector }),
    ...(spec.fieldSelector === undefined ? {} : { fieldSelector: spec.fieldSelector }),
    ...query,
  });
  return `${spec.path}?${parameters}`;
}
