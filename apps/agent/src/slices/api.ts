import { numberOf, objectAt, parseJSON, textAt } from "@fairlead/base";
import type { ObjectRequest, PostAnswer } from "@fairlead/watch";
import type { SliceWriter } from "./controller.ts";
import type { LeasePort } from "./election.ts";
import type { LeaseRecord } from "./lease.ts";
import type { OwnSlice } from "./slice.ts";

/** One request to the API server. @throws Error when there is no answer */
export type Send = (request: ObjectRequest) => Promise<PostAnswer>;

/** The API server refused a request. */
class RefusedError extends Error {
  override readonly name = "RefusedError";
}

/** Writes of EndpointSlices. */
export function sliceWriter(send: Send): SliceWriter {
  const collection = (namespace: string) =>
    `/apis/discovery.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/endpointslices`;
  const one = ({ namespace, name = "" }: { readonly namespace: string; readonly name?: string }) =>
    `${collection(namespace)}/${encodeURIComponent(name)}`;
  return {
    create: (object) => accepted(send, { method: "POST", path: collection(object.metadata.namespace), object }),
    update: (object) => unlessMissing(send, { method: "PUT", path: one(object.metadata), object }),
    async remove(slice: OwnSlice) {
      await unlessMissing(send, { method: "DELETE", path: one(slice) });
    },
  };
}

/** A coordination.k8s.io/v1 Lease. */
export function leasePort(send: Send, namespace: string, name: string): LeasePort {
  const collection = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
  return {
    async read() {
      const found = await unlessMissing(send, { method: "GET", path: `${collection}/${name}` });
      if (found === undefined) return undefined;
      const version = textAt(objectAt(found, "metadata"), "resourceVersion") ?? "";
      return { record: recordIn(objectAt(found, "spec")), version };
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

async function unlessMissing(send: Send, request: ObjectRequest): Promise<unknown> {
  const { status, body } = await send(request);
  return status === 404 ? undefined : contentOf(request, status, body);
}

async function accepted(send: Send, request: ObjectRequest): Promise<unknown> {
  const { status, body } = await send(request);
  return contentOf(request, status, body);
}

/** @throws RefusedError naming the request, the status and what the server says */
function contentOf({ method, path }: ObjectRequest, status: number, body: string): unknown {
  const content = parseJSON(body);
  if (status >= 200 && status < 300) return content;
  throw new RefusedError(`${method} ${path} answered ${status}: ${textAt(content, "message") ?? body.slice(0, 200)}`);
}
