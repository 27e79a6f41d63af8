import { clientA, NETWORKS, NODE_A, outside, ovnA, ovnB, ovnClient, webA1 } from "../../addresses.ts";
import { rowsOf, workload } from "../case.ts";
import { everyMode, exceptIpvs, LEAVE, masqueraded, plain, REJECT } from "../expected.ts";

const row = rowsOf("excluded clients");

const ovn = workload(181, { endpoints: [ovnA, ovnB], loadBalancer: "VIP" });
const unready = workload(182, { endpoints: [{ host: ovnA, ready: false }] });
const dual = workload(183, { endpoints: [ovnA], families: ["IPv4", "IPv6"] });
const sticky = workload(184, { endpoints: [ovnA, ovnB], affinitySeconds: 600 });
const internal = workload(185, { endpoints: [ovnA, ovnB], internal: "Local" });
const annotated = workload(186, { endpoints: [webA1], annotations: { "fairlead.dev/ownership": "foreign" } });
const ours = workload(187, { endpoints: [webA1] });
const shared = workload(189, { endpoints: [webA1, ovnA] });
const local = workload(190, { endpoints: [ovnA, ovnB], externally: "Local", loadBalancer: "VIP" });

const OPTIONS = { excludedFrontends: "excluded-clients" } as const;
const several = { ...OPTIONS, excludeClusterCIDRs: ["10.244.0.0/24", "10.244.1.0/24", "10.244.2.0/24"] } as const;

/** ipvs cannot tell clients apart at an address, and leaves it for all. */
const served = (outcome: Parameters<typeof everyMode>[0]) => exceptIpvs(outcome, LEAVE);
const left = everyMode(LEAVE);

export const excludedClientsCases = [
  row("its ClusterIP from a pod of ours", ovn, {
    from: clientA,
    options: OPTIONS,
    expected: served(masqueraded([ovnA, ovnB])),
  }),
  row("its ClusterIP from a pod of ours, not masqueraded", ovn, {
    from: clientA,
    options: { ...OPTIONS, masqueradeToExcluded: false },
    expected: served(plain([ovnA, ovnB])),
  }),
  row("its ClusterIP from a pod of ours, which its endpoints route to", ovn, {
    from: clientA,
    options: { ...OPTIONS, clusterCIDRs: [NETWORKS.calico.IPv4, NETWORKS.ovn.IPv4] },
    expected: served(plain([ovnA, ovnB])),
  }),
  row("its ClusterIP from a pod of ours, where pods cannot be told", ovn, {
    from: clientA,
    options: { ...OPTIONS, detectLocal: { kind: "none" } },
    expected: served(masqueraded([ovnA, ovnB])),
  }),
  row("its load balancer under policy Local from a pod of ours", local, {
    to: local.loadBalancerIP.IPv4,
    from: clientA,
    options: OPTIONS,
    expected: exceptIpvs(masqueraded([ovnA, ovnB]), plain([ovnA])),
  }),
  row("its load balancer under policy Local from outside", local, {
    to: local.loadBalancerIP.IPv4,
    from: outside,
    options: OPTIONS,
    expected: everyMode(plain([ovnA])),
  }),
  row("a service with all its endpoints of both networks, from a pod of ours", shared, {
    from: clientA,
    options: { mixedServices: "all", masqueradeToExcluded: true },
    expected: everyMode(masqueraded([webA1, ovnA])),
  }),
  row("a service with all its endpoints of both networks, as kube-proxy serves it", shared, {
    from: clientA,
    options: { mixedServices: "all" },
    expected: everyMode(plain([webA1, ovnA])),
  }),
  row("a service of ours next to it keeps the client's address", ours, {
    from: clientA,
    options: { mixedServices: "all", masqueradeToExcluded: true },
    expected: everyMode(plain([webA1])),
  }),
  row("its ClusterIP from the node", ovn, {
    from: NODE_A,
    options: OPTIONS,
    expected: served(masqueraded([ovnA, ovnB])),
  }),
  row("its ClusterIP from outside", ovn, {
    from: outside,
    options: OPTIONS,
    expected: served(masqueraded([ovnA, ovnB])),
  }),
  row("its ClusterIP from a pod of its own network", ovn, { from: ovnClient, options: OPTIONS, expected: left }),
  row("another port of it from a pod of its own network", ovn, {
    from: ovnClient,
    port: 81,
    options: OPTIONS,
    expected: left,
  }),
  row("its node port from outside", ovn, {
    to: NODE_A.addresses.IPv4,
    port: ovn.nodePort,
    from: outside,
    options: OPTIONS,
    expected: everyMode(masqueraded([ovnA, ovnB])),
  }),
  row("its load balancer from a pod of its own network", ovn, {
    to: ovn.loadBalancerIP.IPv4,
    from: ovnClient,
    options: OPTIONS,
    expected: everyMode(masqueraded([ovnA, ovnB])),
  }),
  row("without a ready endpoint a pod of ours is refused", unready, {
    from: clientA,
    options: OPTIONS,
    expected: served(REJECT),
  }),
  row("without a ready endpoint a pod of its own network is not refused", unready, {
    from: ovnClient,
    options: OPTIONS,
    expected: left,
  }),
  row("IPv6 from a pod of ours", dual, {
    to: dual.clusterIP.IPv6,
    from: clientA,
    options: OPTIONS,
    expected: served(masqueraded([ovnA], { family: "IPv6" })),
  }),
  row("IPv6 from a pod of its own network", dual, {
    to: dual.clusterIP.IPv6,
    from: ovnClient,
    options: OPTIONS,
    expected: left,
  }),
  row("session affinity", sticky, {
    from: clientA,
    options: OPTIONS,
    sticky: true,
    expected: served(masqueraded([ovnA, ovnB])),
  }),
  row("internal policy Local", internal, { from: clientA, options: OPTIONS, expected: served(masqueraded([ovnA])) }),
  row("internal policy Local from a pod of its own network", internal, {
    from: ovnClient,
    options: OPTIONS,
    expected: left,
  }),
  row("masqueradeAll marks no packet that is left", ovn, {
    from: ovnClient,
    options: { ...OPTIONS, masqueradeAll: true },
    expected: left,
  }),
  row("several excluded CIDRs: a client in one of them", ovn, { from: ovnClient, options: several, expected: left }),
  row("several excluded CIDRs: a client in none of them", ovn, {
    from: clientA,
    options: several,
    expected: served(masqueraded([ovnA, ovnB])),
  }),
  row("the node's own address in an excluded CIDR: the node is served", ovn, {
    from: NODE_A,
    options: { ...OPTIONS, excludeClusterCIDRs: [NETWORKS.ovn.IPv4, NETWORKS.nodes.IPv4] },
    expected: served(masqueraded([ovnA, ovnB])),
  }),
  row("annotated foreign: a pod of ours is served", annotated, {
    from: clientA,
    options: OPTIONS,
    expected: served(plain([webA1])),
  }),
  row("annotated foreign: a pod of the other network is left", annotated, {
    from: ovnClient,
    options: OPTIONS,
    expected: left,
  }),
  row("a service of ours is everybody's", ours, {
    from: ovnClient,
    options: OPTIONS,
    expected: everyMode(masqueraded([webA1])),
  }),
  row("the service turned foreign while we served it", ovn, {
    before: [workload(181, { endpoints: [webA1], loadBalancer: "VIP" }).objects],
    from: ovnClient,
    options: OPTIONS,
    expected: left,
  }),
  row("the service turned ours", workload(188, { endpoints: [webA1] }), {
    before: [workload(188, { endpoints: [ovnA] }).objects],
    from: ovnClient,
    options: OPTIONS,
    expected: everyMode(masqueraded([webA1])),
  }),
];
