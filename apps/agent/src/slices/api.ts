/** Objects of the API server that this controller follows and writes. */

import { numberOf, objectAt, parseJSON, SLICES_MANAGER, stringOf, textAt, valueAt } from "@fairlead/base";
import { decodeServiceCIDR, type ServiceCIDR } from "@fairlead/core";
import { followServiceCIDRs } from "@fairlead/intake";
import type {
  ObjectChange,
  ObjectRequest,
  OtherResource,
  OtherState,
  OtherSubscription,
  PostAnswer,
  Subscriptions,
} from "@fairlead/watch";
import type { SliceWriter } from "./controller.ts";
import type { LeasePort, LeaseRecord } from "./election.ts";
import type { OwnSlice } from "./slice.ts";
import type { SliceState } from "./slice-state.ts";

/** One request to the API server. @throws Error when there is no answer */
export type Send = (request: ObjectRequest) => Promise<PostAnswer>;

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

/** Resources without which it is not known what is to be written. */
export type Needed = "services" | "pods" | "nodes" | "endpointSlices" | "serviceCIDRs";

interface SlicesSubscriptionsOptions {
  readonly state: SliceState;
  /** Empty: services of any proxy that has a name. */
  readonly serviceProxyName: string;
  readonly onChange: () => void;
  /** A service that is followed; undefined: it is gone. */
  readonly onService: (key: `${string}/${string}`, raw: unknown) => void;
  /** The first complete list of a resource is in the state. */
  readonly onSynced: (resource: Needed) => void;
  /** Whether a resource can be read. That of networks may not be there, which is no fault. */
  readonly onState: (resource: Needed | "networks", state: OtherState) => void;
}

const PROXY_NAME_LABEL = "service.kubernetes.io/service-proxy-name";

/**
 * Leads the changes of a source into the state. The state keeps what it reads of an object, and no raw one: a
 * cluster's pods are many.
 */
export function slicesSubscriptions(
  options: SlicesSubscriptionsOptions,
): Subscriptions<never, never, never, ServiceCIDR> {
  const { state, serviceProxyName, onChange, onService } = options;
  const proxy = { name: PROXY_NAME_LABEL, ...(serviceProxyName !== "" && { value: serviceProxyName }) };
  const followed = (resource: OtherResource, name: Needed, set: SetObject, decode = whole): OtherSubscription => ({
    resource,
    decode,
    onState: (is) => options.onState(name, is),
    onChange(change) {
      if (change.type === "synced") options.onSynced(name);
      else set(change.key, change.type === "upsert" ? change.object : undefined);
      onChange();
    },
  });
  const setService: SetObject = (key, raw) => {
    state.setService(key, raw);
    onService(key, raw);
  };
  return {
    serviceCIDRs: {
      decode: (raw) => decodeServiceCIDR(raw).object,
      onChange: serviceCIDRs(options),
    },
    others: [
      followed({ ...core("services", "Service"), label: proxy }, "services", setService),
      followed(core("pods", "Pod"), "pods", (key, raw) => state.setPod(key, raw)),
      followed({ ...core("nodes", "Node"), namespaced: false }, "nodes", (key, raw) =>
        state.setZone(key.slice(key.indexOf("/") + 1), zoneOf(raw)),
      ),
      followed(SLICES, "endpointSlices", (key, raw) => state.setSlice(key, raw), slicesOf(serviceProxyName)),
      networks(options),
    ],
  };
}

/** The API server refused a request. */
class RefusedError extends Error {
  override readonly name = "RefusedError";
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

const MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by";
const ZONE_LABEL = "topology.kubernetes.io/zone";

const NETWORKS: OtherResource = {
  group: "k8s.cni.cncf.io",
  version: "v1",
  plural: "network-attachment-definitions",
  kind: "NetworkAttachmentDefinition",
  namespaced: true,
};

type SetObject = (key: `${string}/${string}`, raw: unknown) => void;

function core(plural: string, kind: string): OtherResource {
  return { group: "", version: "v1", plural, kind, namespaced: true };
}

const SLICES: OtherResource = {
  group: "discovery.k8s.io",
  version: "v1",
  plural: "endpointslices",
  kind: "EndpointSlice",
  namespaced: true,
  label: { name: MANAGED_BY_LABEL, value: SLICES_MANAGER },
};

function whole(raw: unknown): unknown {
  return raw;
}

/** Those of other names' Services, which have the Service's label, are another controller's. */
function slicesOf(serviceProxyName: string): (raw: unknown) => unknown {
  if (serviceProxyName === "") return whole;
  return (raw) => (valueAt(raw, "metadata", "labels", PROXY_NAME_LABEL) === serviceProxyName ? raw : undefined);
}

function zoneOf(raw: unknown): string | undefined {
  return stringOf(valueAt(raw, "metadata", "labels", ZONE_LABEL)) || undefined;
}

function serviceCIDRs({ state, onSynced, onChange }: SlicesSubscriptionsOptions) {
  const follow = followServiceCIDRs((cidrs) => state.setServiceCIDRs(cidrs));
  return (change: Parameters<typeof follow>[0]): void => {
    follow(change);
    if (change.type === "synced") onSynced("serviceCIDRs");
    onChange();
  };
}

/** The names of all networks; unknown while the resource cannot be read, so that none is called missing. */
function networks({ state, onChange, onState }: SlicesSubscriptionsOptions): OtherSubscription {
  const names = new Set<string>();
  let [complete, absent] = [false, false];
  const set = () => {
    state.setNetworks(complete && !absent ? new Set(names) : undefined);
    onChange();
  };
  return {
    resource: NETWORKS,
    decode: () => true,
    onState(is) {
      onState("networks", is);
      const was = absent;
      absent = is === "absent";
      if (absent !== was) set();
    },
    onChange(change: ObjectChange<unknown>) {
      if (change.type === "upsert") names.add(change.key);
      else if (change.type === "delete") names.delete(change.key);
      else complete = true;
      if (complete) set();
    },
  };
}
