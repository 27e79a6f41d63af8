import type { OtherName, OtherResource, OtherSubscription, ResourceName } from "./change.ts";
import { endpointSlice } from "./protobuf/kinds/endpoint-slice.ts";
import { node } from "./protobuf/kinds/node.ts";
import { service } from "./protobuf/kinds/service.ts";
import { serviceCIDR } from "./protobuf/kinds/service-cidr.ts";
import type { Message } from "./protobuf/message.ts";
import type { RawObject } from "./raw.ts";
import { keyOf, objectAt, textAt, valueAt } from "./raw.ts";

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
  /** It is one beside those that every proxy follows. */
  readonly other?: OtherSubscription;
  /** The two selectors' meaning, for sources without a server. */
  readonly selects: (raw: RawObject) => boolean;
}

/** Services with this label, whatever its value, belong to another proxy. */
const OTHER_PROXY_LABEL = "service.kubernetes.io/service-proxy-name";
/** EndpointSlices of headless services carry this. */
const HEADLESS_LABEL = "service.kubernetes.io/headless";

/** @param nodeName metadata.name of the own Node */
export function resourceSpecs(nodeName: string, others: readonly OtherSubscription[] = []): readonly ResourceSpec[] {
  return [services, endpointSlices, ownNode(nodeName), serviceCIDRs, ...others.map(otherSpec)];
}

export function otherName({ group, version, plural }: OtherResource): OtherName {
  return group === "" ? `${plural}.${version}` : `${plural}.${version}.${group}`;
}

/** Where the server tells of a group's version which resources it has. */
export function discoveryPath({ group, version }: OtherResource): string {
  return group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
}

function otherSpec(other: OtherSubscription): ResourceSpec {
  const { resource } = other;
  const { group, version, plural, kind, namespaced, only } = resource;
  const root = discoveryPath(resource);
  return {
    name: otherName(resource),
    apiVersion: group === "" ? version : `${group}/${version}`,
    kind,
    path: only === undefined ? `${root}/${plural}` : `${root}/namespaces/${only.namespace}/${plural}`,
    namespaced,
    ...(only && { fieldSelector: `metadata.name=${only.name}` }),
    other,
    selects: (raw) => only === undefined || keyOf(raw) === `${only.namespace}/${only.name}`,
  };
}

const services: ResourceSpec = {
  name: "services",
  apiVersion: "v1",
  kind: "Service",
  protobuf: service,
  path: "/api/v1/services",
  namespaced: true,
  labelSelector: `!${OTHER_PROXY_LABEL}`,
  fieldSelector: "spec.clusterIP!=None",
  selects: (raw) => !hasLabel(raw, OTHER_PROXY_LABEL) && textAt(objectAt(raw, "spec"), "clusterIP") !== "None",
};

const endpointSlices: ResourceSpec = {
  name: "endpointSlices",
  apiVersion: "discovery.k8s.io/v1",
  kind: "EndpointSlice",
  protobuf: endpointSlice,
  path: "/apis/discovery.k8s.io/v1/endpointslices",
  namespaced: true,
  labelSelector: `!${HEADLESS_LABEL}`,
  selects: (raw) => !hasLabel(raw, HEADLESS_LABEL),
};

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

function hasLabel(raw: RawObject, label: string): boolean {
  return valueAt(objectAt(objectAt(raw, "metadata"), "labels"), label) !== undefined;
}
