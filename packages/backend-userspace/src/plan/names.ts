/** Names of kube-proxy's userspace mode, which it had until v1.25. */

/** nat: to cluster IPs, external and load-balancer addresses, from pods and from elsewhere. */
export const PORTALS_CONTAINER = "KUBE-PORTALS-CONTAINER";
/** The same from the node itself. */
export const PORTALS_HOST = "KUBE-PORTALS-HOST";
/** nat: to node ports, from pods and from elsewhere. */
export const NODEPORT_CONTAINER = "KUBE-NODEPORT-CONTAINER";
/** The same from the node itself. */
export const NODEPORT_HOST = "KUBE-NODEPORT-HOST";
/** filter: what may come in to the relays. */
export const NODEPORT_NON_LOCAL = "KUBE-NODEPORT-NON-LOCAL";

/** Chains of iptables mode, which refuse what this mode does not relay; userspace mode of old had no such thing. */
export const SERVICES = "KUBE-SERVICES";
export const EXTERNAL_SERVICES = "KUBE-EXTERNAL-SERVICES";
export const PROXY_FIREWALL = "KUBE-PROXY-FIREWALL";
