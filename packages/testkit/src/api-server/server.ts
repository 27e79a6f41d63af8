/** The light API server. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { json as readJson } from "node:stream/consumers";
import { objectAt, type RawObject, textAt, valueAt } from "@fairlead/base";
import { type Pods, servePods } from "./pod-streams.ts";
import { encodeEvent, encodeObject } from "./protobuf/encode.ts";
import {
  collectionOf,
  fail,
  json,
  keyIn,
  kindIn,
  line,
  parsePath,
  type ResourcePath,
  Store,
  type StoredEvent,
  serveObject,
  tooLarge,
} from "./store.ts";

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
}

/** Answers a request in the server's place; false: the server answers after all. */
export type Interceptor = (request: SeenRequest, response: ServerResponse) => boolean;

type KindedObject = RawObject & { readonly kind: string };

/** How lists and watches of one collection are answered. */
interface Answers {
  list(response: ServerResponse, metadata: RawObject, items: readonly RawObject[]): ServerResponse;
  /** Of a watch's answer. */
  readonly contentType: string;
  event(type: string, object: RawObject): string | Uint8Array;
}

/**
 * A kube-apiserver in this process, over real HTTP: lists (in chunks too), WatchList, watches with bookmarks and 410,
 * creates, replaces, merge patches, server-side applies, patches of status and deletes objects of any kind, in all
 * namespaces or one; programs and ports of pods where it has some; with faults at will.
 */
export class LightApiServer {
  readonly store = new Store();
  readonly requests: SeenRequest[] = [];
  readonly #interceptors: Interceptor[] = [];
  readonly #watches = new Map<ServerResponse, OpenWatch>();
  readonly #waiting: { count: number; wake: () => void }[] = [];
  readonly #server: Server;
  /** Breaks off what runs in pods, and the connections to them. */
  readonly cutPods: () => void;
  readonly #scheme: string;
  watchList = true;
  /** Whether lists and watches come as protobuf to clients that ask for it first. */
  protobuf = true;
  /** The bearer token to be accepted; undefined: all. */
  token: string | undefined;
  /** What is behind its pods; undefined: nothing can be started or reached there. */
  pods: Pods | undefined;
  /** Asked before each request, as the interceptors are, and asked again for the next one. */
  answerInstead: Interceptor = () => false;

  /**
   * @param tls PEM key and certificate of a server for HTTPS; absent: plain HTTP, over which no client sends its token
   */
  constructor(tls?: { readonly key: string; readonly cert: string }) {
    const answer = (request: IncomingMessage, response: ServerResponse) => this.#answer(request, response);
    this.#server = tls === undefined ? createServer(answer) : createSecureServer(tls, answer);
    this.#scheme = tls === undefined ? "http" : "https";
    this.cutPods = servePods(this.#server, () => this.pods);
    this.#server.on("upgrade", (message: IncomingMessage) => this.#note(seen(message)));
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    // The address of a listening TCP server is always an AddressInfo.
    return `${this.#scheme}://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.cutPods();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  put(objects: Iterable<KindedObject>): void {
    for (const object of objects) this.store.put(collectionOf(object), object);
  }

  /** Deletes objects of any kind; of those that are not there nothing happens. */
  remove(objects: Iterable<KindedObject>): void {
    for (const object of objects) this.store.delete(collectionOf(object), keyIn(object));
  }

  /** The next requests that match are answered by `interceptor`, once each. */
  intercept(interceptor: Interceptor): void {
    this.#interceptors.push(interceptor);
  }

  /** Interceptors that have not been used yet are dropped. */
  forget(): void {
    this.#interceptors.length = 0;
  }

  /** Resolves once that many requests have come in all. */
  async requestsCame(count: number): Promise<void> {
    if (this.requests.length < count) await new Promise<void>((wake) => this.#waiting.push({ count, wake }));
  }

  get openWatches(): number {
    return this.#watches.size;
  }

  /** Breaks off the open watches, after `text`. */
  cutWatches(text = ""): void {
    this.#leave((response) => response.write(text, () => response.destroy()));
  }

  endWatches(): void {
    this.#leave((response) => response.end());
  }

  /** Writes into all open watches, in whatever encoding they are. */
  send(text: string): void {
    for (const response of this.#watches.keys()) response.write(text);
  }

  /** An event for all open watches, each in its encoding. */
  notify(type: string, object: RawObject): void {
    for (const [response, { answers }] of this.#watches) response.write(answers.event(type, object));
  }

  bookmark(): void {
    this.notify("BOOKMARK", { metadata: { resourceVersion: String(this.store.version) } });
  }

  #answer(message: IncomingMessage, response: ServerResponse): void {
    const request = seen(message);
    this.requests.push(request);
    if (this.answerInstead(request, response)) return;
    const index = this.#interceptors.findIndex((interceptor) => interceptor(request, response));
    if (index === -1) this.#serve(message, request, response);
    else this.#interceptors.splice(index, 1);
    this.#wake();
  }

  #note(request: SeenRequest): void {
    this.requests.push(request);
    this.#wake();
  }

  #wake(): void {
    for (const { count, wake } of this.#waiting) if (this.requests.length >= count) wake();
  }

  #serve(message: IncomingMessage, request: SeenRequest, response: ServerResponse): unknown {
    if (this.token !== undefined && request.headers.authorization !== `Bearer ${this.token}`) {
      return fail(response, 401, "Unauthorized", "Unauthorized");
    }
    return message.method === "GET" ? this.#read(request, response) : this.#write(message, request, response);
  }

  async #write(message: IncomingMessage, request: SeenRequest, response: ServerResponse): Promise<ServerResponse> {
    const path = parsePath(request.path);
    if (path === undefined) return fail(response, 404, "NotFound", "the server could not find the requested resource");
    try {
      const body = message.method === "DELETE" ? undefined : await readJson(message);
      const isApply = message.headers["content-type"]?.startsWith("application/apply-patch") === true;
      return serveObject(this.store, isApply ? "APPLY" : request.method, path, body, response);
    } catch (error) {
      return fail(response, 400, "BadRequest", String(error));
    }
  }

  #read(request: SeenRequest, response: ServerResponse): ServerResponse {
    const path = parsePath(request.path);
    if (path === undefined) return fail(response, 404, "NotFound", "the server could not find the requested resource");
    if (path.name !== undefined) return serveObject(this.store, "GET", path, undefined, response);
    const answers = answersFor(path.collection, request.headers.accept, this.protobuf);
    if (request.query.get("watch") === "true") return this.#watch(path, request.query, answers, response);
    return this.#list(path, request.query, answers, response);
  }

  #list(
    { collection, namespace }: ResourcePath,
    query: URLSearchParams,
    answers: Answers,
    response: ServerResponse,
  ): ServerResponse {
    const wanted = Number(query.get("resourceVersion") ?? "0");
    if (wanted > this.store.version) return tooLarge(response, wanted, this.store.version);
    const all = this.store.list(collection).filter(selection(query, namespace));
    const limit = query.has("resourceVersion") ? all.length : Number(query.get("limit") ?? all.length);
    const from = Number(query.get("continue") ?? "0");
    const end = from + Math.max(limit, 1);
    const next = end < all.length ? { continue: String(end) } : {};
    const metadata = { resourceVersion: String(this.store.version), ...next };
    return answers.list(response, metadata, all.slice(from, end));
  }

  #watch(
    { collection, namespace }: ResourcePath,
    query: URLSearchParams,
    answers: Answers,
    response: ServerResponse,
  ): ServerResponse {
    const initial = query.get("sendInitialEvents") === "true";
    if (initial && !this.watchList) return fail(response, 422, "Invalid", "sendInitialEvents is forbidden");
    const from = Number(query.get("resourceVersion") ?? "0");
    if (!initial && from < this.store.compacted) return fail(response, 410, "Expired", "too old resource version");
    if (from > this.store.version) return tooLarge(response, from, this.store.version);
    response.writeHead(200, { "content-type": answers.contentType });
    response.flushHeaders();
    const matches = selection(query, namespace);
    const notify = (event: StoredEvent) => {
      if (event.path === collection) send(response, answers, event, matches);
    };
    if (initial) this.#sendAll(collection, matches, answers, response);
    else for (const event of this.store.since(from)) notify(event);
    const stop = this.store.onEvent(notify);
    this.#watches.set(response, { stop, answers });
    response.once("close", () => {
      stop();
      this.#watches.delete(response);
    });
    return response;
  }

  #leave(how: (response: ServerResponse) => void): void {
    for (const [response, { stop }] of this.#watches) {
      stop();
      how(response);
    }
    this.#watches.clear();
  }

  #sendAll(path: string, matches: Selection, answers: Answers, response: ServerResponse): void {
    for (const raw of this.store.list(path).filter(matches)) response.write(answers.event("ADDED", raw));
    const annotations = { "k8s.io/initial-events-end": "true" };
    const metadata = { resourceVersion: String(this.store.version), annotations };
    // client-go takes no bookmark without a kind.
    response.write(answers.event("BOOKMARK", { ...kindIn(path), metadata }));
  }
}

/** Equality-based selectors with commas between: `!label`, `label`, `a.b!=value`, `a.b=value`; one namespace. */
export function selection(query: URLSearchParams, namespace?: string): (raw: RawObject) => boolean {
  const labels = termsOf(query.get("labelSelector"));
  const fields = termsOf(query.get("fieldSelector"));
  return (raw) => {
    const metadata = objectAt(raw, "metadata");
    if (namespace !== undefined && textAt(metadata, "namespace") !== namespace) return false;
    const own = objectAt(metadata, "labels");
    if (!labels.every((term) => matches(term, valueAt(own, term.name)))) return false;
    return fields.every((term) =>
      matches(
        term,
        term.name.split(".").reduce<unknown>((at, name) => valueAt(at, name), raw),
      ),
    );
  };
}

function seen({ method = "", url = "/", headers }: IncomingMessage): SeenRequest {
  const { pathname, searchParams } = new URL(url, "http://fake");
  return { method, path: pathname, query: searchParams, headers };
}

type Selection = ReturnType<typeof selection>;

interface OpenWatch {
  readonly stop: () => void;
  readonly answers: Answers;
}

function send(response: ServerResponse, answers: Answers, event: StoredEvent, matches: Selection): void {
  const before = event.before !== undefined && matches(event.before) ? event.before : undefined;
  const after = event.after !== undefined && matches(event.after) ? event.after : undefined;
  if (after !== undefined) response.write(answers.event(before === undefined ? "ADDED" : "MODIFIED", after));
  else if (before !== undefined) {
    const metadata = { ...objectAt(before, "metadata"), resourceVersion: String(event.version) };
    response.write(answers.event("DELETED", { ...before, metadata }));
  }
}

const PROTOBUF_TYPE = "application/vnd.kubernetes.protobuf";

/** Protobuf where it is offered, asked for before anything else, and known for the collection's kind; else JSON. */
function answersFor(collection: string, accept: string | undefined, offersProtobuf: boolean): Answers {
  const of = kindIn(collection);
  if (!offersProtobuf || accept?.startsWith(PROTOBUF_TYPE) !== true || of === undefined) return inJson;
  return inProtobuf(of);
}

const inJson: Answers = {
  list: (response, metadata, items) => json(response, 200, { kind: "List", apiVersion: "v1", metadata, items }),
  contentType: "application/json",
  event: line,
};

function inProtobuf({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): Answers {
  return {
    list: (response, metadata, items) => {
      response.writeHead(200, { "content-type": PROTOBUF_TYPE });
      return response.end(encodeObject(apiVersion, `${kind}List`, { metadata, items }));
    },
    contentType: `${PROTOBUF_TYPE};stream=watch`,
    event: (type, object) =>
      encodeEvent(
        type,
        type === "ERROR" ? encodeObject("v1", "Status", object) : encodeObject(apiVersion, kind, object),
      ),
  };
}

interface Term {
  readonly name: string;
  readonly is: "=" | "!=" | "there" | "absent";
  readonly value: string;
}

function termsOf(selector: string | null): readonly Term[] {
  return (selector ?? "").split(",").filter(Boolean).map(termOf);
}

function termOf(text: string): Term {
  if (text.startsWith("!")) return { name: text.slice(1), is: "absent", value: "" };
  const [, name = "", operator, value = ""] = /^(.+?)(!=|==?)(.*)$/.exec(text) ?? [];
  if (operator === undefined) return { name: text, is: "there", value };
  return { name, is: operator === "!=" ? "!=" : "=", value };
}

function matches({ is, value: wanted }: Term, value: unknown): boolean {
  if (is === "there") return value !== undefined;
  if (is === "absent") return value === undefined;
  return (value === wanted) === (is === "=");
}
