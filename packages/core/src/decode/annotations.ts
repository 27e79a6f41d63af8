/** Fairlead's own annotations, and objects as a proxy reads them that knows none of them. */

import { GATEWAY_ANNOTATIONS, GATEWAY_ROUTES } from "@fairlead/base";
import type { ClusterView } from "../cluster-state.ts";
import type { EndpointSlice, Service } from "../objects.ts";

export const ANNOTATION_PREFIX = "fairlead.dev/";

/** All annotations that a part of Fairlead reads of these kinds; docs/annotations.md describes them. */
export const OWN_ANNOTATIONS = {
  Service: own([
    "balance",
    "fast-path",
    "ipvs-scheduler",
    "load-balancer-ip-mode",
    "local-port",
    "no-local-endpoint",
    "node-port-addresses",
    "node-port-source-ranges",
    "ownership",
  ]),
  EndpointSlice: own(["weight", "weight-refused"]),
  /** Of the Services of Gateways: fairlead-controller writes them, and no plan follows them. */
  GatewayService: [GATEWAY_ROUTES, GATEWAY_ANNOTATIONS] as readonly string[],
} as const;

/** The same objects as kube-proxy reads them: what they are without an annotation of Fairlead. */
export function withoutOwnAnnotations(view: ClusterView): ClusterView {
  return {
    keys: () => view.keys(),
    service: (key) => {
      const service = view.service(key);
      return service && plainService(service);
    },
    slices: (key) => view.slices(key).map(plainSlice),
  };
}

function own(names: readonly string[]): readonly string[] {
  return names.map((name) => `${ANNOTATION_PREFIX}${name}`);
}

function plainService(service: Service): Service {
  const all = Object.entries(service.annotations);
  const others = all.filter(([name]) => !name.startsWith(ANNOTATION_PREFIX));
  if (others.length === all.length) return service;
  const { leftLoadBalancerIPs, ...rest } = service;
  const loadBalancerIPs = leftLoadBalancerIPs ?? service.loadBalancerIPs;
  return { ...rest, loadBalancerIPs, annotations: Object.fromEntries(others) };
}

function plainSlice(slice: EndpointSlice): EndpointSlice {
  if (slice.weight === undefined) return slice;
  const { weight: _weight, refused: _refused, ...rest } = slice;
  return rest;
}
