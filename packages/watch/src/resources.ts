import type { ResourceName } from "./change.ts";
import type { RawObject } from "./raw.ts";
import { objectAt, textAt, valueAt } from "./raw.ts";

/** One resource as the API serves it, and the selection that kube-proxy makes of it. */
export interface ResourceSpec {
  readonly name: ResourceName;
  readonly apiVersion: string;
  readonly kind: string;
  readonly path: string;
  readonly namespaced: boolean;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** The server may not have the resource at all: then its list is empty. */
  readonly optional?: true;
  /** The two selectors' meaning, for sources without a server. */
  readonly selects: (raw: RawObject) => boolean;
}

/** Services with this label, whatever its value, belong to another proxy. */
const otherProxyLabel = "service.kubernetes.io/service-proxy-name";
/** EndpointSlices of headless services carry this. */
const headlessLabel = "service.kubernetes.io/headless";

/** @param nodeName metadata.name of the own Node */
export function resourceSpecs(nodeName: string): readonly ResourceSpec[] {
  return [services, endpointSlices, ownNode(nodeName), serviceCIDRs];
}

const services: ResourceSpec = {
  name: "services",
  apiVersion: "v1",
  kind: "Service",
  path: "/api/v1/services",
  namespaced: true,
  labelSelector: `!${otherProxyLabel}`,
  fieldSelector: "spec.clusterIP!=None",
  selects: (raw) => !hasLabel(raw, otherProxyLabel) && textAt(objectAt(raw, "spec"), "clusterIP") !== "None",
};

const endpointSlices: ResourceSpec = {
  name: "endpointSlices",
  apiVersion: "discovery.k8s.io/v1",
  kind: "EndpointSlice",
  path: "/apis/discovery.k8s.io/v1/endpointslices",
  namespaced: true,
  labelSelector: `!${headlessLabel}`,
  selects: (raw) => !hasLabel(raw, headlessLabel),
};

function ownNode(nodeName: string): ResourceSpec {
  return {
    name: "node",
    apiVersion: "v1",
    kind: "Node",
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
  path: "/apis/networking.k8s.io/v1/servicecidrs",
  namespaced: false,
  optional: true,
  selects: () => true,
};

function hasLabel(raw: RawObject, label: string): boolean {
  return valueAt(objectAt(objectAt(raw, "metadata"), "labels"), label) !== undefined;
}
