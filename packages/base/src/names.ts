/** The value of label endpointslice.kubernetes.io/managed-by on slices that lead to pods' secondary networks. */
export const NETWORKS_MANAGER = "networks.fairlead.dev";
/**
 * Annotation of a Gateway's Service, which fairlead-controller writes: the route that serves each port, as
 * `PORT=NAMESPACE/ROUTE,PORT=…`.
 */
export const GATEWAY_ROUTES = "fairlead.dev/gateway-routes";
/** The same: the annotations that spec.infrastructure gave the Service, so that they go with it. */
export const GATEWAY_ANNOTATIONS = "fairlead.dev/gateway-annotations";
export const GATEWAY_GROUP = "gateway.networking.k8s.io";
/** spec.controllerName of the GatewayClasses that fairlead-controller serves. */
export const GATEWAY_CONTROLLER = "fairlead.dev/gateway";
