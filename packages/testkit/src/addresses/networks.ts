/** The networks of the test ground. None of them is routed on a machine that runs the tests. */
export const NETWORKS = {
  /** The pod network that this proxy serves. */
  calico: { IPv4: "10.144.0.0/16", IPv6: "fd00:144::/48" },
  /** A pod network that serves its own services. */
  ovn: { IPv4: "10.244.0.0/16", IPv6: "fd00:244::/48" },
  services: { IPv4: "10.96.0.0/12", IPv6: "fd00:10:96::/108" },
  nodes: { IPv4: "10.201.0.0/24", IPv6: "fd00:201::/64" },
  /** Load-balancer addresses. */
  loadBalancers: { IPv4: "203.0.113.0/24", IPv6: "fd00:203::/64" },
  /** External addresses. */
  external: { IPv4: "192.0.2.0/24", IPv6: "fd00:192::/64" },
  /** Clients outside the cluster that source ranges let in, and others. */
  outside: { IPv4: "198.51.100.0/24", IPv6: "fd00:198:51::/64" },
  strangers: { IPv4: "198.18.0.0/24", IPv6: "fd00:198:18::/64" },
} as const;

/** The parts of the pod networks that a node has, in the order calico, ovn. */
export const POD_BLOCKS = {
  "node-a": {
    calico: { IPv4: "10.144.1.0/24", IPv6: "fd00:144::1:0/112" },
    ovn: { IPv4: "10.244.1.0/24", IPv6: "fd00:244::1:0/112" },
  },
  "node-b": {
    calico: { IPv4: "10.144.2.0/24", IPv6: "fd00:144::2:0/112" },
    ovn: { IPv4: "10.244.2.0/24", IPv6: "fd00:244::2:0/112" },
  },
} as const;
