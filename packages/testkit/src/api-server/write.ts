import type { ServerResponse } from "node:http";
import { isObject, objectAt, type RawObject, textAt } from "@fairlead/base";
import { mergePatch } from "./json.ts";
import type { ResourcePath } from "./resource-path.ts";
import { fail, json } from "./respond.ts";
import type { Store } from "./store.ts";

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
  { collection }: ResourcePath,
  stored: RawObject,
  body: unknown,
  response: ServerResponse,
): ServerResponse {
  const version = (raw: unknown) => textAt(objectAt(raw, "metadata"), "resourceVersion");
  if (version(body) !== undefined && version(body) !== version(stored))
    return fail(response, 409, "Conflict", "the object has been modified");
  return json(response, 200, store.put(collection, isObject(body) ? { ...body, status: stored["status"] } : {}));
}

/** Who patches an object cannot set its status, nor the other way round. */
function patched(stored: RawObject, body: unknown, status: boolean): RawObject {
  const merged = mergePatch(stored, body);
  const after = isObject(merged) ? merged : {};
  return status ? { ...stored, status: after["status"] } : { ...after, status: stored["status"] };
}
