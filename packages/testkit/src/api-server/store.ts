/** The objects of the light API server, their paths, and how they are written. */

import type { ServerResponse } from "node:http";
import { fileURLToPath } from "node:url";
import { isObject, objectAt, type RawObject, textAt } from "@fairlead/base";

export interface StoredEvent {
  readonly version: number;
  readonly path: string;
  /** What the object was before and is after the change. */
  readonly before: RawObject | undefined;
  readonly after: RawObject | undefined;
}

/** What an API server keeps: objects with resourceVersions, and the changes since the last compaction. */
export class Store {
  version = 100;
  /** Changes up to this version are forgotten: watches from before get 410. */
  compacted = 100;
  readonly #objects = new Map<string, Map<string, RawObject>>();
  readonly #events: StoredEvent[] = [];
  readonly #listeners = new Set<(event: StoredEvent) => void>();

  /** @param path of the collection in all namespaces, such as `/api/v1/services` */
  put(path: string, raw: RawObject): RawObject {
    const key = keyIn(raw);
    const before = this.#table(path).get(key);
    this.version++;
    const metadata = { ...objectAt(raw, "metadata"), resourceVersion: String(this.version) };
    const after = { ...raw, metadata };
    this.#table(path).set(key, after);
    this.#record({ version: this.version, path, before, after });
    return after;
  }

  /** @param key `namespace/name`; without a namespace `/name` */
  get(path: string, key: string): RawObject | undefined {
    return this.#table(path).get(key);
  }

  delete(path: string, key: string): void {
    const before = this.#table(path).get(key);
    if (before === undefined) return;
    this.version++;
    this.#table(path).delete(key);
    this.#record({ version: this.version, path, before, after: undefined });
  }

  list(path: string): readonly RawObject[] {
    return [...this.#table(path)].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, raw]) => raw);
  }

  since(version: number): readonly StoredEvent[] {
    return this.#events.filter((event) => event.version > version);
  }

  compact(): void {
    this.compacted = this.version;
  }

  onEvent(listener: (event: StoredEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #record(event: StoredEvent): void {
    this.#events.push(event);
    for (const listener of this.#listeners) listener(event);
  }

  #table(path: string): Map<string, RawObject> {
    const table = this.#objects.get(path) ?? new Map<string, RawObject>();
    this.#objects.set(path, table);
    return table;
  }
}

export function keyIn(raw: RawObject): string {
  const metadata = objectAt(raw, "metadata");
  return `${textAt(metadata, "namespace") ?? ""}/${textAt(metadata, "name")}`;
}

/**
 * POST to a collection, GET, PUT, PATCH (merge) and DELETE of an object; `/status` takes the status only, as its object
 * leaves it. APPLY is a server-side apply, here a merge patch that creates what is not there.
 */
export function serveObject(
  store: Store,
  method: string,
  path: ResourcePath,
  body: unknown,
  response: ServerResponse,
): ServerResponse {
  if (method === "POST" && path.name === undefined) return create(store, path, body, response);
  const key = `${path.namespace ?? ""}/${path.name}`;
  const stored = store.get(path.collection, key);
  if (stored === undefined && method === "APPLY") return create(store, path, body, response);
  if (stored === undefined) return fail(response, 404, "NotFound", `${key} not found`);
  if (method === "GET") return json(response, 200, stored);
  if (method === "DELETE") {
    store.delete(path.collection, key);
    return json(response, 200, { kind: "Status", status: "Success" });
  }
  if (method === "PUT") return replace(store, path, stored, body, response);
  if (method === "PATCH" || method === "APPLY")
    return json(response, 200, store.put(path.collection, patched(stored, body, path.status)));
  return fail(response, 405, "MethodNotAllowed", `${method} is not supported`);
}

export interface ResourcePath {
  /** The collection in all namespaces, such as `/api/v1/services`: what the store is asked with. */
  readonly collection: string;
  readonly namespace: string | undefined;
  /** Absent: the collection itself. */
  readonly name: string | undefined;
  readonly status: boolean;
}

const PATH = /^(\/api\/v1|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+))?\/([^/]+)(?:\/([^/]+)(\/status)?)?$/;

/** Undefined for paths that do not lead to objects. */
export function parsePath(path: string): ResourcePath | undefined {
  const found = PATH.exec(path);
  if (found === null) return undefined;
  const [, root = "", namespace, plural = "", name, status] = found;
  const decoded = name === undefined ? undefined : decodeURIComponent(name);
  return { collection: `${root}/${plural}`, namespace, name: decoded, status: status !== undefined };
}

const GATEWAYS = "gateway.networking.k8s.io/v1";

/** The kinds that the proxies and the controller of Gateways follow, and where they are. */
const KINDS = [
  { apiVersion: "v1", kind: "Node", collection: "/api/v1/nodes" },
  { apiVersion: "v1", kind: "Service", collection: "/api/v1/services" },
  { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", collection: "/apis/discovery.k8s.io/v1/endpointslices" },
  { apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", collection: "/apis/networking.k8s.io/v1/servicecidrs" },
  { apiVersion: GATEWAYS, kind: "GatewayClass", collection: `/apis/${GATEWAYS}/gatewayclasses` },
  { apiVersion: GATEWAYS, kind: "Gateway", collection: `/apis/${GATEWAYS}/gateways` },
  { apiVersion: GATEWAYS, kind: "TCPRoute", collection: `/apis/${GATEWAYS}/tcproutes` },
] as const;

/** What an object of a collection is; undefined for kinds that no proxy follows. */
export function kindIn(path: string): { readonly apiVersion: string; readonly kind: string } | undefined {
  const found = KINDS.find(({ collection }) => collection === path);
  return found && { apiVersion: found.apiVersion, kind: found.kind };
}

/** The collection that objects of a kind are in. */
export function collectionOf(wanted: { readonly kind: string }): string {
  const found = KINDS.find(({ kind }) => kind === wanted.kind);
  if (found === undefined) throw new Error(`${wanted.kind}: no proxy follows such objects`);
  return found.collection;
}

export function line(type: string, object: unknown): string {
  return `${JSON.stringify({ type, object })}\n`;
}

export function json(response: ServerResponse, code: number, body: unknown): ServerResponse {
  response.writeHead(code, { "content-type": "application/json" });
  return response.end(JSON.stringify(body));
}

export function fail(response: ServerResponse, code: number, reason: string, message: string): ServerResponse {
  return json(response, code, { kind: "Status", status: "Failure", code, reason, message });
}

export function tooLarge(response: ServerResponse, wanted: number, current: number): ServerResponse {
  const details = { causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }] };
  const message = `Too large resource version: ${wanted}, current: ${current}`;
  return json(response, 504, { kind: "Status", status: "Failure", code: 504, reason: "Timeout", message, details });
}

function create(store: Store, path: ResourcePath, body: unknown, response: ServerResponse): ServerResponse {
  const name = nameOf(objectAt(body, "metadata"), store.version);
  if (!isObject(body) || name === undefined) return fail(response, 422, "Invalid", "metadata.name: Required value");
  const key = `${path.namespace ?? ""}/${name}`;
  if (store.get(path.collection, key) !== undefined) return fail(response, 409, "AlreadyExists", `${key} exists`);
  const own = path.namespace === undefined ? {} : { namespace: path.namespace };
  const metadata = { ...objectAt(body, "metadata"), ...own, name };
  return json(response, 201, store.put(path.collection, { ...body, metadata }));
}

/** What it is called, or one that begins so as the server makes it. */
function nameOf(metadata: Readonly<RawObject>, version: number): string | undefined {
  const [name, beginning] = [textAt(metadata, "name"), textAt(metadata, "generateName")];
  return name ?? (beginning === undefined ? undefined : `${beginning}${version}`);
}

/** Refuses to write over what is newer than what was read. */
function replace(
  store: Store,
  { collection, status }: ResourcePath,
  stored: RawObject,
  body: unknown,
  response: ServerResponse,
): ServerResponse {
  const version = (raw: unknown) => textAt(objectAt(raw, "metadata"), "resourceVersion");
  if (version(body) !== undefined && version(body) !== version(stored))
    return fail(response, 409, "Conflict", "the object has been modified");
  const written = isObject(body) ? body : {};
  const after = status ? { ...stored, status: written["status"] } : { ...written, status: stored["status"] };
  return json(response, 200, store.put(collection, after));
}

/** Who patches an object cannot set its status, nor the other way round. */
function patched(stored: RawObject, body: unknown, status: boolean): RawObject {
  const merged = mergePatch(stored, body);
  const after = isObject(merged) ? merged : {};
  return status ? { ...stored, status: after["status"] } : { ...after, status: stored["status"] };
}

/** JSON merge patch (RFC 7396). */
function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const merged: RawObject = isObject(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name];
    else merged[name] = mergePatch(merged[name], value);
  }
  return merged;
}

/** What a response has that is too much: one text that goes on and on, or arrays in one another. */
export type Excess = "text" | "nesting";

/**
 * A list whose second item is as large as asked for; give it to a response by `Readable.from(…).pipe(response)`.
 *
 * @param bytes about so many in all
 * @param items JSON of the items before and after it
 */
export function* hugeList(excess: Excess, bytes: number, [before, after]: readonly [string, string]) {
  yield `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"200"},"items":[${before},`;
  yield* hugeObject(excess, bytes);
  yield `,${after}]}`;
}

/** A line of a watch whose object is as large as asked for. */
export function* hugeEvent(excess: Excess, bytes: number, version: string) {
  yield '{"type":"ADDED","object":';
  yield* hugeObject(excess, bytes, version);
  yield "}\n";
}

/** Service default/huge. */
function* hugeObject(excess: Excess, bytes: number, version = "150") {
  const metadata = `"metadata":{"name":"huge","namespace":"default","resourceVersion":"${version}"}`;
  yield `{"kind":"Service","apiVersion":"v1",${metadata},"spec":`;
  if (excess === "text") {
    yield '"';
    yield* repeated("x", bytes);
    yield '"}';
  } else {
    const half = Math.ceil(bytes / 2);
    yield* repeated("[", half);
    yield* repeated("]", half);
    yield "}";
  }
}

function* repeated(character: string, times: number) {
  const piece = character.repeat(2 ** 16);
  for (let left = times; left > 0; left -= piece.length) yield left >= piece.length ? piece : piece.slice(0, left);
}

/** Keys and certificates in PEM: `ca`, `server` for 127.0.0.1 and kubernetes.test, `client`. */
export const tlsFolder = fileURLToPath(new URL("tls/", import.meta.url));
