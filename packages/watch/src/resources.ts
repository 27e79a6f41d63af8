/** The resources of the Kubernetes API that can be subscribed to, and what identifies an object of theirs. */

import { objectAt, type RawObject, textAt, valueAt } from "@fairlead/base";
import type { ObjectKey, OtherName, OtherResource, OtherSubscription, ResourceName } from "./change.ts";
import { endpointSlice, type Message, node, service, serviceCIDR } from "./protobuf-kinds.ts";

/** One resource as the API serves it, and the selection that kube-proxy makes of it. */
export interface ResourceSpec {
  readonly name: ResourceName;
  readonly apiVersion: string;
  readonly kind: string;
  readonly path: string;
  readonly namespaced: boolean;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Its fields in protobuf, those that a proxy reads; absent: it comes as JSON. */
  readonly protobuf?: Message;
  /** The server may not have the resource at all: then its list is empty. */
  readonly optional?: true;
  /** It is one alongside those that every proxy follows. */
  readonly other?: OtherSubscription;
  /** The two selectors' meaning, for sources without a server. */
  readonly selects: (raw: RawObject) => boolean;
}

export interface Selection {
  /** metadata.name of the own Node. */
  readonly nodeName: string;
  /**
   * The value that the label service.kubernetes.io/service-proxy-name of its Services has. Default "": they have no
   * such label.
   */
  readonly serviceProxyName?: string | undefined;
  /**
   * The value that the label endpointslice.kubernetes.io/managed-by of its EndpointSlices has. Default: any, also none.
   */
  readonly slicesManagedBy?: string | undefined;
  /** Services and EndpointSlices of this namespace only, for a reader who may read no others. Default: of all. */
  readonly namespace?: string | undefined;
}

export function resourceSpecs(
  { nodeName, serviceProxyName = "", slicesManagedBy, namespace }: Selection,
  others: readonly OtherSubscription[] = [],
): readonly ResourceSpec[] {
  const ofServices = [servicesOf(serviceProxyName), slicesOf(slicesManagedBy)].map((spec) => within(spec, namespace));
  return [...ofServices, ownNode(nodeName), serviceCIDRs, ...others.map(otherSpec)];
}

/** One object of a resource is a resource of its own: `configmaps.v1/kube-system/fairlead-networks`. */
export function otherName({ group, version, plural, only }: OtherResource): OtherName {
  const one = only === undefined ? "" : `/${only.namespace}/${only.name}`;
  return group === "" ? `${plural}.${version}${one}` : `${plural}.${version}.${group}${one}`;
}

/** Where the server lists the resources of a group's version. */
export function discoveryPath({ group, version }: OtherResource): string {
  return group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
}

/** Key of an API object by its metadata; undefined when it has no usable name. */
export function objectKeyOf(raw: unknown): ObjectKey | undefined {
  const metadata = objectAt(raw, "metadata");
  const name = textAt(metadata, "name");
  if (name === undefined) return undefined;
  // Joined, so that the string is flat: a template would keep its parts alongside it.
  return [textAt(metadata, "namespace") ?? "", name].join("/") as ObjectKey;
}

export function resourceVersionOf(raw: unknown): string | undefined {
  return textAt(objectAt(raw, "metadata"), "resourceVersion");
}

/** Which services a proxy is for; a Service with this label belongs to the proxy of that name (KEP-2447). */
const PROXY_NAME_LABEL = "service.kubernetes.io/service-proxy-name";
/** EndpointSlices of headless services carry this. */
const HEADLESS_LABEL = "service.kubernetes.io/headless";
/** Which controller writes an EndpointSlice. */
const MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by";

function within(spec: ResourceSpec, namespace: string | undefined): ResourceSpec {
  if (namespace === undefined) return spec;
  return {
    ...spec,
    path: spec.path.replace(/(?=\/[^/]+$)/, `/namespaces/${namespace}`),
    selects: (raw) => spec.selects(raw) && textAt(objectAt(raw, "metadata"), "namespace") === namespace,
  };
}

function otherSpec(other: OtherSubscription): ResourceSpec {
  const { resource } = other;
  const { group, version, plural, kind, namespaced, only, label } = resource;
  const root = discoveryPath(resource);
  return {
    name: otherName(resource),
    apiVersion: group === "" ? version : `${group}/${version}`,
    kind,
    path: only === undefined ? `${root}/${plural}` : `${root}/namespaces/${only.namespace}/${plural}`,
    namespaced,
    ...(only && { fieldSelector: `metadata.name=${only.name}` }),
    ...(label && { labelSelector: label.value === undefined ? label.name : `${label.name}=${label.value}` }),
    other,
    selects: (raw) =>
      (only === undefined || objectKeyOf(raw) === `${only.namespace}/${only.name}`) &&
      (label === undefined || hasLabel(raw, label)),
  };
}

function hasLabel(raw: RawObject, { name, value }: NonNullable<OtherResource["label"]>): boolean {
  const own = labelOf(raw, name);
  return value === undefined ? own !== undefined : own === value;
}

function servicesOf(proxy: string): ResourceSpec {
  const wanted = proxy === "" ? undefined : proxy;
  return {
    name: "services",
    apiVersion: "v1",
    kind: "Service",
    protobuf: service,
    path: "/api/v1/services",
    namespaced: true,
    labelSelector: wanted === undefined ? `!${PROXY_NAME_LABEL}` : `${PROXY_NAME_LABEL}=${wanted}`,
    fieldSelector: "spec.clusterIP!=None",
    selects: (raw) =>
      labelOf(raw, PROXY_NAME_LABEL) === wanted && textAt(objectAt(raw, "spec"), "clusterIP") !== "None",
  };
}

/**
 * All of them, whatever proxy their service is for: the label is on those that Kubernetes' own controller makes, some
 * time after it is on the Service, and on others only if their makers put it there.
 */
function slicesOf(manager: string | undefined): ResourceSpec {
  const managed = manager === undefined ? "" : `,${MANAGED_BY_LABEL}=${manager}`;
  return {
    name: "endpointSlices",
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    protobuf: endpointSlice,
    path: "/apis/discovery.k8s.io/v1/endpointslices",
    namespaced: true,
    labelSelector: `!${HEADLESS_LABEL}${managed}`,
    selects: (raw) =>
      labelOf(raw, HEADLESS_LABEL) === undefined &&
      (manager === undefined || labelOf(raw, MANAGED_BY_LABEL) === manager),
  };
}

function ownNode(nodeName: string): ResourceSpec {
  return {
    name: "node",
    apiVersion: "v1",
    kind: "Node",
    protobuf: node,
    path: "/api/v1/nodes",
    namespaced: false,
    fieldSelector: `metadata.name=${nodeName}`,
    selects: (raw) => textAt(objectAt(raw, "metadata"), "name") === nodeName,
  };
}

const serviceCIDRs: ResourceSpec = {
  name: "serviceCIDRs",
  apiVersion: "networking.k8s.io/v1",
  kind: "ServiceCIDR",
  protobuf: serviceCIDR,
  path: "/apis/networking.k8s.io/v1/servicecidrs",
  namespaced: false,
  optional: true,
  selects: () => true,
};

function labelOf(raw: RawObject, label: string): unknown {
  return valueAt(objectAt(objectAt(raw, "metadata"), "labels"), label);
}
