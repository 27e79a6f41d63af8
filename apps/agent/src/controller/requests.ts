/** What all jobs read of objects and write to the API server, and what a watch brings of that later. */

import {
  fieldsOf,
  type IPFamily,
  isPort,
  numberOf,
  objectAt,
  objectsAt,
  type Protocol,
  parseJSON,
  protocolOf,
  type RawObject,
  textAt,
} from "@fairlead/base";
import type { ObjectRequest, OtherResource, PostAnswer } from "@fairlead/watch";
import type { LeasePort, LeaseRecord } from "./election.ts";

/** Labels, annotations and the like: text to text. */
export function textsIn(value: unknown): Readonly<Record<string, string>> {
  const entries = Object.entries(fieldsOf(value));
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"));
}

/** `namespace/name`. */
export type Key = `${string}/${string}`;

export function namespacedName(namespace: string, name: string): Key {
  return `${namespace}/${name}`;
}

/** One request to the API server. @throws Error when there is no answer */
export type Send = (request: ObjectRequest) => Promise<PostAnswer>;

export class RefusedError extends Error {
  override readonly name = "RefusedError";
  readonly status: number;
  readonly said: string;

  constructor({ method, path }: ObjectRequest, status: number, said: string) {
    super(`${method} ${path} answered ${status}: ${said}`);
    this.status = status;
    this.said = said;
  }
}

/** @returns undefined: there is no such object. @throws RefusedError as {@link accepted} */
export async function unlessMissing(send: Send, request: ObjectRequest): Promise<unknown> {
  const { status, body } = await send(request);
  return status === 404 ? undefined : contentOf(request, status, body);
}

/** @returns the object that the server answers with. @throws RefusedError where it refuses */
export async function accepted(send: Send, request: ObjectRequest): Promise<unknown> {
  const { status, body } = await send(request);
  return contentOf(request, status, body);
}

/** A coordination.k8s.io/v1 Lease. */
export function leasePort(send: Send, namespace: string, name: string): LeasePort {
  const collection = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
  return {
    async read() {
      const found = await unlessMissing(send, { method: "GET", path: `${collection}/${name}` });
      if (found === undefined) return undefined;
      return { record: recordIn(objectAt(found, "spec")), version: versionOf(found) };
    },
    async write(spec, version) {
      const metadata = { namespace, name, ...(version !== undefined && { resourceVersion: version }) };
      const object = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata, spec };
      const request: ObjectRequest =
        version === undefined
          ? { method: "POST", path: collection, object }
          : { method: "PUT", path: `${collection}/${name}`, object };
      await accepted(send, request);
    },
  };
}

/**
 * Versions that own writes have replaced. The watch brings them later: put in place of the answer to a write, the next
 * write would be over a version that is gone.
 */
export class Replaced<Id> {
  readonly #versions = new Map<Id, Set<string>>();

  /** An own write over this version was answered. */
  add(id: Id, version: string): void {
    this.#versions.set(id, (this.#versions.get(id) ?? new Set<string>()).add(version));
  }

  /** Whether what the watch brings has been replaced. @param version undefined: the object is gone */
  isOld(id: Id, version: string | undefined): boolean {
    if (version !== undefined && this.#versions.get(id)?.has(version) === true) return true;
    this.#versions.delete(id);
    return false;
  }
}

/** Objects by what they refer to. */
export class Index<On, T> {
  readonly #on = new Map<On, Map<string, T>>();
  readonly #keys = new Map<string, readonly On[]>();

  of(on: On): readonly T[] {
    return [...(this.#on.get(on)?.values() ?? [])];
  }

  get(id: string): T | undefined {
    const [on] = this.#keys.get(id) ?? [];
    return on === undefined ? undefined : this.#on.get(on)?.get(id);
  }

  /** What is referred to. */
  get all(): Iterable<On> {
    return this.#on.keys();
  }

  /** @returns what it referred to, and refers to now */
  set(id: string, object: T | undefined, refersTo: (object: T) => readonly On[]): ReadonlySet<On> {
    const before = this.#keys.get(id) ?? [];
    const now = object === undefined ? [] : refersTo(object);
    for (const one of before) {
      this.#on.get(one)?.delete(id);
      if (this.#on.get(one)?.size === 0) this.#on.delete(one);
    }
    if (now.length === 0) this.#keys.delete(id);
    else this.#keys.set(id, now);
    if (object !== undefined)
      for (const one of now) this.#on.set(one, (this.#on.get(one) ?? new Map()).set(id, object));
    return new Set([...before, ...now]);
  }
}

/** metadata.resourceVersion of an object; "" where it has none. */
export function versionOf(raw: unknown): string {
  return textAt(objectAt(raw, "metadata"), "resourceVersion") ?? "";
}

export const SERVICE_NAME_LABEL = "kubernetes.io/service-name";
export const SLICE_MANAGER_LABEL = "endpointslice.kubernetes.io/managed-by";

export const SLICES: OtherResource = {
  group: "discovery.k8s.io",
  version: "v1",
  plural: "endpointslices",
  kind: "EndpointSlice",
  namespaced: true,
};

export interface SlicePort {
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: number;
}

export function slicePortIn(item: RawObject): readonly SlicePort[] {
  const [protocol, port] = [protocolOf(item["protocol"]), item["port"]];
  return protocol === undefined || !isPort(port) ? [] : [{ name: textAt(item, "name") ?? "", protocol, port }];
}

export function hintNames(endpoint: RawObject, hint: "forZones" | "forNodes"): readonly { readonly name: string }[] {
  return objectsAt(objectAt(endpoint, "hints"), hint).flatMap((one) => {
    const name = textAt(one, "name");
    return name === undefined ? [] : [{ name }];
  });
}

/**
 * The object that is written; without a name the API server makes one. The Service's end is the slice's as well: with
 * blockOwnerDeletion some clusters ask for a right to all Services (OwnerReferencesPermissionEnforcement).
 */
export function sliceObject<M extends object, E>(
  metadata: M,
  { name, uid }: { readonly name: string; readonly uid: string },
  content: { readonly family: IPFamily; readonly ports: readonly SlicePort[]; readonly endpoints: readonly E[] },
) {
  const ownerReferences = [{ apiVersion: "v1", kind: "Service", name, uid, controller: true }];
  const { family: addressType, ports, endpoints } = content;
  const type = { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice" } as const;
  return { ...type, metadata: { ...metadata, ownerReferences }, addressType, ports, endpoints };
}

interface SliceName {
  readonly namespace: string;
  /** Absent: the API server makes one. */
  readonly name?: string;
}

interface WrittenSlice {
  readonly metadata: SliceName;
}

/** Writes to the API server. Each throws an Error where the server refuses or gives no answer. */
export interface SliceWriter {
  /** @returns the object as the server has it */
  create(object: WrittenSlice): Promise<unknown>;
  /**
   * Refused where another client wrote since the version in the object.
   *
   * @returns the object as the server has it; undefined: there is none any longer
   */
  update(object: WrittenSlice): Promise<unknown>;
  /** One that is gone already is no error. */
  remove(slice: Required<SliceName>): Promise<void>;
}

export function sliceWriter(send: Send): SliceWriter {
  const collection = (namespace: string) =>
    `/apis/discovery.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/endpointslices`;
  const one = ({ namespace, name = "" }: SliceName) => `${collection(namespace)}/${encodeURIComponent(name)}`;
  return {
    create: (object) => accepted(send, { method: "POST", path: collection(object.metadata.namespace), object }),
    update: (object) => unlessMissing(send, { method: "PUT", path: one(object.metadata), object }),
    async remove(slice) {
      await unlessMissing(send, { method: "DELETE", path: one(slice) });
    },
  };
}

function contentOf(request: ObjectRequest, status: number, body: string): unknown {
  const content = parseJSON(body);
  if (status >= 200 && status < 300) return content;
  throw new RefusedError(request, status, textAt(content, "message") ?? body.slice(0, 200));
}

/** What another client left out is as if it was released. */
function recordIn(spec: Readonly<Record<string, unknown>>): LeaseRecord {
  return {
    holderIdentity: textAt(spec, "holderIdentity") ?? "",
    leaseDurationSeconds: numberOf(spec["leaseDurationSeconds"]) ?? 0,
    acquireTime: textAt(spec, "acquireTime") ?? "",
    renewTime: textAt(spec, "renewTime") ?? "",
    leaseTransitions: numberOf(spec["leaseTransitions"]) ?? 0,
  };
}
