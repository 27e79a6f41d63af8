/** Names that others rely on: operators, Kube-OVN and kube-proxy's own cleanup. They are kube-proxy's. */

/** The dummy device that holds the services' addresses, so that packets to them count as packets to this node. */
export const DEVICE = "kube-ipvs0";

export const SERVICES = "KUBE-SERVICES";
export const POSTROUTING = "KUBE-POSTROUTING";
export const MARK_MASQ = "KUBE-MARK-MASQ";
/** In nat and in filter, for two purposes. */
export const NODE_PORT = "KUBE-NODE-PORT";
export const LOAD_BALANCER = "KUBE-LOAD-BALANCER";
export const FORWARD = "KUBE-FORWARD";
export const PROXY_FIREWALL = "KUBE-PROXY-FIREWALL";
export const SOURCE_RANGES = "KUBE-SOURCE-RANGES-FIREWALL";
/** The chain of table filter that refuses packets to service addresses and ports which have no virtual server. */
export const IPVS_FILTER = "KUBE-IPVS-FILTER";
export const IPVS_OUT_FILTER = "KUBE-IPVS-OUT-FILTER";
