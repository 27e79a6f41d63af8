/** Who sends: excluded clients, and what counts as the cluster's own traffic. */

import { clientA, clientB, NETWORKS, NODE_A, outside, ovnA, ovnB, ovnClient, webA1, webB1 } from "../../addresses.ts";
import { rowsOf, workload } from "../case.ts";
import { everyMode, exceptIpvs, LEAVE, masqueraded, plain, REJECT } from "../expected.ts";
import type { AgentOptions } from "../options.ts";

const excludedRow = rowsOf("excluded clients");

const excludedOvn = workload(181, { endpoints: [ovnA, ovnB], loadBalancer: "VIP" });
const unready = workload(182, { endpoints: [{ host: ovnA, ready: false }] });
const excludedDual = workload(183, { endpoints: [ovnA], families: ["IPv4", "IPv6"] });
const sticky = workload(184, { endpoints: [ovnA, ovnB], affinitySeconds: 600 });
const internal = workload(185, { endpoints: [ovnA, ovnB], internal: "Local" });
const annotated = workload(186, { endpoints: [webA1], annotations: { "fairlead.dev/ownership": "foreign" } });
const ours = workload(187, { endpoints: [webA1] });
const shared = workload(189, { endpoints: [webA1, ovnA] });
const excludedLocal = workload(190, { endpoints: [ovnA, ovnB], externally: "Local", loadBalancer: "VIP" });

const OPTIONS = { excludedFrontends: "excluded-clients" } as const;
const excludedSeveral = {
  ...OPTIONS,
  excludeClusterCIDRs: ["10.244.0.0/24", "10.244.1.0/24", "10.244.2.0/24"],
} as const;

/** ipvs cannot distinguish clients at an address, and leaves it for all. */
const served = (outcome: Parameters<typeof everyMode>[0]) => exceptIpvs(outcome, LEAVE);
const left = everyMode(LEAVE);

export const excludedClientsCases = [
  excludedRow("its ClusterIP from a pod of ours", excludedOvn, {
    from: clientA,
    options: OPTIONS,
    expected: served(masqueraded([ovnA, ovnB])),
  }),
  excludedRow("its ClusterIP from a pod of ours, not masqueraded", excludedOvn, {
    from: clientA,
    options: { ...OPTIONS, masqueradeToExcluded: false },
    expected: served(plain([ovnA, ovnB])),
  }),
  excludedRow("its ClusterIP from a pod of ours, which its endpoints route to", excludedOvn, {
    from: clientA,
    options: { ...OPTIONS, clusterCIDRs: [NETWORKS.calico.IPv4, NETWORKS.ovn.IPv4] },
    expected: served(plain([ovnA, ovnB])),
  }),
  excludedRow("its ClusterIP from a pod of ours, where pods cannot be recognized", excludedOvn, {
    from: clientA,
    options: { ...OPTIONS, detectLocal: { kind: "none" } },
    expected: served(masqueraded([ovnA, ovnB])),
  }),
  excludedRow("its load balancer under policy Local from a pod of ours", excludedLocal, {
    to: excludedLocal.loadBalancerIP.IPv4,
    from: clientA,
    options: OPTIONS,
    expected: exceptIpvs(masqueraded([ovnA, ovnB]), plain([ovnA])),
  }),
  excludedRow("its load balancer under policy Local from outside", excludedLocal, {
    to: excludedLocal.loadBalancerIP.IPv4,
    from: outside,
    options: OPTIONS,
    expected: everyMode(plain([ovnA])),
  }),
  excludedRow("a service with all its endpoints of both networks, from a pod of ours", shared, {
    from: clientA,
    options: { mixedServices: "all", masqueradeToExcluded: true },
    expected: everyMode(masqueraded([webA1, ovnA])),
  }),
  excludedRow("a service with all its endpoints of both networks, as kube-proxy serves it", shared, {
    from: clientA,
    options: { mixedServices: "all" },
    expected: everyMode(plain([webA1, ovnA])),
  }),
  excludedRow("a service of ours next to it keeps the client's address", ours, {
    from: clientA,
    options: { mixedServices: "all", masqueradeToExcluded: true },
    expected: everyMode(plain([webA1])),
  }),
  excludedRow("its ClusterIP from the node", excludedOvn, {
    from: NODE_A,
    options: OPTIONS,
    expected: served(masqueraded([ovnA, ovnB])),
  }),
  excludedRow("its ClusterIP from outside", excludedOvn, {
    from: outside,
    options: OPTIONS,
    expected: served(masqueraded([ovnA, ovnB])),
  }),
  excludedRow("its ClusterIP from a pod of its own network", excludedOvn, {
    from: ovnClient,
    options: OPTIONS,
    expected: left,
  }),
  excludedRow("another port of it from a pod of its own network", excludedOvn, {
    from: ovnClient,
    port: 81,
    options: OPTIONS,
    expected: left,
  }),
  excludedRow("its node port from outside", excludedOvn, {
    to: NODE_A.addresses.IPv4,
    port: excludedOvn.nodePort,
    from: outside,
    options: OPTIONS,
    expected: everyMode(masqueraded([ovnA, ovnB])),
  }),
  excludedRow("its load balancer from a pod of its own network", excludedOvn, {
    to: excludedOvn.loadBalancerIP.IPv4,
    from: ovnClient,
    options: OPTIONS,
    expected: everyMode(masqueraded([ovnA, ovnB])),
  }),
  excludedRow("without a ready endpoint a pod of ours is refused", unready, {
    from: clientA,
    options: OPTIONS,
    expected: served(REJECT),
  }),
  excludedRow("without a ready endpoint a pod of its own network is not refused", unready, {
    from: ovnClient,
    options: OPTIONS,
    expected: left,
  }),
  excludedRow("IPv6 from a pod of ours", excludedDual, {
    to: excludedDual.clusterIP.IPv6,
    from: clientA,
    options: OPTIONS,
    expected: served(masqueraded([ovnA], { family: "IPv6" })),
  }),
  excludedRow("IPv6 from a pod of its own network", excludedDual, {
    to: excludedDual.clusterIP.IPv6,
    from: ovnClient,
    options: OPTIONS,
    expected: left,
  }),
  excludedRow("session affinity", sticky, {
    from: clientA,
    options: OPTIONS,
    sticky: true,
    expected: served(masqueraded([ovnA, ovnB])),
  }),
  excludedRow("internal policy Local", internal, {
    from: clientA,
    options: OPTIONS,
    expected: served(masqueraded([ovnA])),
  }),
  excludedRow("internal policy Local from a pod of its own network", internal, {
    from: ovnClient,
    options: OPTIONS,
    expected: left,
  }),
  excludedRow("masqueradeAll marks no packet that is left", excludedOvn, {
    from: ovnClient,
    options: { ...OPTIONS, masqueradeAll: true },
    expected: left,
  }),
  excludedRow("several excluded CIDRs: a client in one of them", excludedOvn, {
    from: ovnClient,
    options: excludedSeveral,
    expected: left,
  }),
  excludedRow("several excluded CIDRs: a client in none of them", excludedOvn, {
    from: clientA,
    options: excludedSeveral,
    expected: served(masqueraded([ovnA, ovnB])),
  }),
  excludedRow("the node's own address in an excluded CIDR: the node is served", excludedOvn, {
    from: NODE_A,
    options: { ...OPTIONS, excludeClusterCIDRs: [NETWORKS.ovn.IPv4, NETWORKS.nodes.IPv4] },
    expected: served(masqueraded([ovnA, ovnB])),
  }),
  excludedRow("annotated foreign: a pod of ours is served", annotated, {
    from: clientA,
    options: OPTIONS,
    expected: served(plain([webA1])),
  }),
  excludedRow("annotated foreign: a pod of the other network is left", annotated, {
    from: ovnClient,
    options: OPTIONS,
    expected: left,
  }),
  excludedRow("a service of ours serves all clients", ours, {
    from: ovnClient,
    options: OPTIONS,
    expected: everyMode(masqueraded([webA1])),
  }),
  excludedRow("the service turned foreign while we served it", excludedOvn, {
    before: [workload(181, { endpoints: [webA1], loadBalancer: "VIP" }).objects],
    from: ovnClient,
    options: OPTIONS,
    expected: left,
  }),
  excludedRow("the service turned ours", workload(188, { endpoints: [webA1] }), {
    before: [workload(188, { endpoints: [ovnA] }).objects],
    from: ovnClient,
    options: OPTIONS,
    expected: everyMode(masqueraded([webA1])),
  }),
];

const cidrRow = rowsOf("cluster CIDRs");

const web = workload(141, { endpoints: [webA1, webB1], nodePort: true });
const cidrLocal = workload(142, { endpoints: [webA1, webB1], nodePort: true, externally: "Local" });
const dual = workload(143, { endpoints: [webA1, webB1], families: ["IPv4", "IPv6"] });

const { calico, ovn } = NETWORKS;

const several: Partial<AgentOptions> = { clusterCIDRs: [calico.IPv4, ovn.IPv4, calico.IPv6, ovn.IPv6] };
const WIDE: Partial<AgentOptions> = { clusterCIDRs: ["10.128.0.0/9", "fd00::/16"] };

export const clusterCIDRCases = [
  cidrRow("several: a pod of the first network is not masqueraded", web, {
    from: clientA,
    options: several,
    expected: everyMode(plain([webA1, webB1])),
  }),
  cidrRow("several: a pod of the second network is not masqueraded", web, {
    from: ovnClient,
    options: several,
    expected: everyMode(plain([webA1, webB1])),
  }),
  cidrRow("several: the node is masqueraded", web, {
    from: NODE_A,
    options: several,
    expected: everyMode(masqueraded([webA1, webB1])),
  }),
  cidrRow("several: a client outside is masqueraded", web, {
    from: outside,
    options: several,
    expected: everyMode(masqueraded([webA1, webB1])),
  }),
  cidrRow("several: a pod of the second network takes the short cut", cidrLocal, {
    to: NODE_A.addresses.IPv4,
    port: cidrLocal.nodePort,
    from: ovnClient,
    options: several,
    expected: exceptIpvs(plain([webA1, webB1]), plain([webA1])),
  }),
  cidrRow("several: a client outside takes no short cut", cidrLocal, {
    to: NODE_A.addresses.IPv4,
    port: cidrLocal.nodePort,
    from: outside,
    options: several,
    expected: everyMode(plain([webA1])),
  }),
  cidrRow("several, IPv6: a pod of the second network is not masqueraded", dual, {
    to: dual.clusterIP.IPv6,
    from: ovnClient,
    options: several,
    expected: everyMode(plain([webA1, webB1], { family: "IPv6" })),
  }),
  cidrRow("one wide one over both networks", web, {
    from: ovnClient,
    options: WIDE,
    expected: everyMode(plain([webA1, webB1])),
  }),
];

const detectionRow = rowsOf("local detection");

const here = workload(151, { endpoints: [webA1] });
const local = workload(152, { endpoints: [webA1, webB1], nodePort: true, externally: "Local" });

const PREFIX: Partial<AgentOptions> = { detectLocal: { kind: "interface-prefix", prefix: "cali" } };
const NODE_CIDRS: Partial<AgentOptions> = { detectLocal: { kind: "node-cidrs" } };
const NONE: Partial<AgentOptions> = { detectLocal: { kind: "none" } };

export const localDetectionCases = [
  detectionRow("interface prefix: a pod behind such an interface", here, {
    from: clientA,
    options: PREFIX,
    expected: everyMode(plain([webA1])),
  }),
  detectionRow("interface prefix: a pod of another node is masqueraded", here, {
    from: clientB,
    options: PREFIX,
    expected: everyMode(masqueraded([webA1])),
  }),
  detectionRow("interface prefix: a pod of the other network is masqueraded", here, {
    from: ovnClient,
    options: PREFIX,
    expected: everyMode(masqueraded([webA1])),
  }),
  detectionRow("interface prefix: the node is masqueraded", here, {
    from: NODE_A,
    options: PREFIX,
    expected: everyMode(masqueraded([webA1])),
  }),
  detectionRow("interface prefix: a pod takes the short cut", local, {
    to: NODE_A.addresses.IPv4,
    port: local.nodePort,
    from: clientA,
    options: PREFIX,
    expected: exceptIpvs(plain([webA1, webB1]), plain([webA1])),
  }),
  detectionRow("node CIDRs: a pod of this node", here, {
    from: clientA,
    options: NODE_CIDRS,
    expected: everyMode(plain([webA1])),
  }),
  detectionRow("node CIDRs: a pod of another node is masqueraded", here, {
    from: clientB,
    options: NODE_CIDRS,
    expected: everyMode(masqueraded([webA1])),
  }),
  detectionRow("none: no client is masqueraded at the ClusterIP", here, {
    from: outside,
    options: NONE,
    expected: everyMode(plain([webA1])),
  }),
];
