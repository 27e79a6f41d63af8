/**
 * Names that others rely on: operators' dashboards, kubelet, CNIs and kube-proxy's own cleanup. They are kube-proxy's.
 */

export const SERVICES = "KUBE-SERVICES";
export const EXTERNAL_SERVICES = "KUBE-EXTERNAL-SERVICES";
export const NODE_PORTS = "KUBE-NODEPORTS";
export const PROXY_FIREWALL = "KUBE-PROXY-FIREWALL";
export const FORWARD = "KUBE-FORWARD";
export const POSTROUTING = "KUBE-POSTROUTING";
export const MARK_MASQ = "KUBE-MARK-MASQ";
export const CANARY = "KUBE-PROXY-CANARY";
/** Kubelet's chain; this backend adds its rule against packets for 127.0.0.0/8 from outside, and never removes it. */
export const KUBELET_FIREWALL = "KUBE-FIREWALL";

/** nfacct objects that rules count with; who runs the backend makes them (`IptablesOptions.counters`). */
export const INVALID_DROPPED_COUNTER = "ct_state_invalid_dropped_pkts";
/** Counts packets to node ports on 127.0.0.1 that route_localnet lets in. */
export const LOCALHOST_ACCEPTED_COUNTER = "localhost_nps_accepted_pkts";
/** All nfacct objects that rules of this mode may count with. */
export const COUNTERS: readonly string[] = [INVALID_DROPPED_COUNTER, LOCALHOST_ACCEPTED_COUNTER];
