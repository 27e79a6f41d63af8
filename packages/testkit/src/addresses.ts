/** The hosts of the conformance table, and their networks. */

import type { IPFamily } from "@fairlead/core";

/** Where something runs, as the node under test sees its packets come. */
export type HostKind = "pod" | "node" | "outside";

/** One participant of the test ground: a pod, a node or a client outside. Addresses are canonical. */
export interface Host {
  /** Unique, at most 11 characters, so that an interface can be named for it. */
  readonly name: string;
  readonly addresses: Readonly<Record<IPFamily, string>>;
  /** The node it runs on, or is; absent outside of the cluster. */
  readonly node?: string;
  readonly place: HostKind;
  /** The interface of node-a through which its packets come; absent for node-a itself. */
  readonly interface?: string;
}

/** @param family the family of the other end */
export function addressOf(host: Host, family: IPFamily): string {
  return host.addresses[family];
}

/** The node under test. It has a second address of each family, `secondNodeAddress`. */
export const NODE_A: Host = {
  name: "node-a",
  addresses: { IPv4: "10.201.0.10", IPv6: "fd00:201::10" },
  node: "node-a",
  place: "node",
};

export const NODE_A_ZONE = "z1";

export const SECOND_NODE_ADDRESS = { IPv4: "10.202.0.10", IPv6: "fd00:202::10" } as const;

const UPLINK = "eth0";

export const NODE_B: Host = {
  name: "node-b",
  addresses: { IPv4: "10.201.0.11", IPv6: "fd00:201::11" },
  node: "node-b",
  place: "outside",
  interface: UPLINK,
};

/** Pods of the Calico-like network that serve, two on each node. */
export const webA1 = calicoPod("web-a1", "node-a", "10.144.1.5", "fd00:144::1:5");
export const webA2 = calicoPod("web-a2", "node-a", "10.144.1.6", "fd00:144::1:6");
export const webB1 = calicoPod("web-b1", "node-b", "10.144.2.6", "fd00:144::2:6");
export const webB2 = calicoPod("web-b2", "node-b", "10.144.2.7", "fd00:144::2:7");
/** The endpoint of default/nginx-calico. */
export const nginxCalico = calicoPod("nginx", "node-b", "10.144.154.71", "fd00:144::154:71");

/** Pods of the Calico-like network that call. */
export const clientA = calicoPod("client-a", "node-a", "10.144.1.20", "fd00:144::1:20");
export const clientB = calicoPod("client-b", "node-b", "10.144.2.20", "fd00:144::2:20");

/** Pods of the OVN-like network: one on each node that serves, and one that calls. */
export const ovnA = ovnPod("ovn-a", "node-a", "10.244.1.5", "fd00:244::1:5");
export const ovnB = ovnPod("ovn-b", "node-b", "10.244.2.6", "fd00:244::2:6");
export const ovnClient = ovnPod("ovn-client", "node-a", "10.244.1.20", "fd00:244::1:20");

/** Two clients outside the cluster; the source ranges of the cases let in only the first. */
export const outside = outsider("outside", "198.51.100.7", "fd00:198:51::7");
export const stranger = outsider("stranger", "198.18.0.7", "fd00:198:18::7");

/** Where default/kubernetes leads. */
export const apiServer: Host = outsider("api", "192.0.2.2", "fd00:192::2");

/** All hosts that can send or serve in the test ground. */
export const hosts: readonly Host[] = [
  NODE_A,
  NODE_B,
  webA1,
  webA2,
  webB1,
  webB2,
  nginxCalico,
  clientA,
  clientB,
  ovnA,
  ovnB,
  ovnClient,
  outside,
  stranger,
  apiServer,
];

/** The networks of the test ground. None of them is routed on a machine that runs the tests. */
export const NETWORKS = {
  /** The pod network that this proxy serves. */
  calico: { IPv4: "10.144.0.0/16", IPv6: "fd00:144::/48" },
  /** A pod network that serves its own services. */
  ovn: { IPv4: "10.244.0.0/16", IPv6: "fd00:244::/48" },
  services: { IPv4: "10.96.0.0/12", IPv6: "fd00:10:96::/108" },
  nodes: { IPv4: "10.201.0.0/24", IPv6: "fd00:201::/64" },
  loadBalancers: { IPv4: "203.0.113.0/24", IPv6: "fd00:203::/64" },
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

function calicoPod(name: string, node: string, IPv4: string, IPv6: string): Host {
  return { name, node, addresses: { IPv4, IPv6 }, place: "pod", interface: node === "node-a" ? `cali${name}` : UPLINK };
}

function ovnPod(name: string, node: string, IPv4: string, IPv6: string): Host {
  return { name, node, addresses: { IPv4, IPv6 }, place: "pod", interface: node === "node-a" ? `ovn-${name}` : UPLINK };
}

function outsider(name: string, IPv4: string, IPv6: string): Host {
  return { name, addresses: { IPv4, IPv6 }, place: "outside", interface: UPLINK };
}
