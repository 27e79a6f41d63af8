import { clientA, nodeA, outside, ovnA, ovnB, ovnClient, webA1 } from "../../addresses/hosts.ts";
import { networks } from "../../addresses/networks.ts";
import { everyMode, exceptIpvs, leave, masqueraded, plain, reject } from "../expected.ts";
import { rowsOf } from "../row.ts";
import { workload } from "../workload.ts";

const row = rowsOf("excluded clients");

const ovn = workload(181, { endpoints: [ovnA, ovnB], loadBalancer: "VIP" });
const unready = workload(182, { endpoints: [{ host: ovnA, ready: false }] });
const dual = workload(183, { endpoints: [ovnA], families: ["IPv4", "IPv6"] });
const sticky = workload(184, { endpoints: [ovnA, ovnB], affinitySeconds: 600 });
const internal = workload(185, { endpoints: [ovnA, ovnB], internal: "Local" });
const annotated = workload(186, { endpoints: [webA1], annotations: { "fairlead.dev/ownership": "foreign" } });
const ours = workload(187, { endpoints: [webA1] });

const options = { excludedFrontends: "excluded-clients" } as const;
const several = { ...options, excludeClusterCIDRs: ["10.244.0.0/24", "10.244.1.0/24", "10.244.2.0/24"] } as const;

/** ipvs cannot tell clients apart at an address, and leaves it for all. */
const served = (outcome: Parameters<typeof everyMode>[0]) => exceptIpvs(outcome, leave);
const left = everyMode(leave);

export const excludedClientsCases = [
  row("its ClusterIP from a pod of ours", ovn, { from: clientA, options, expected: served(plain([ovnA, ovnB])) }),
  row("its ClusterIP from the node", ovn, { from: nodeA, options, expected: served(masqueraded([ovnA, ovnB])) }),
  row("its ClusterIP from outside", ovn, { from: outside, options, expected: served(masqueraded([ovnA, ovnB])) }),
  row("its ClusterIP from a pod of its own network", ovn, { from: ovnClient, options, expected: left }),
  row("another port of it from a pod of its own network", ovn, { from: ovnClient, port: 81, options, expected: left }),
  row("its node port from outside", ovn, {
    to: nodeA.addresses.IPv4,
    port: ovn.nodePort,
    from: outside,
    options,
    expected: everyMode(masqueraded([ovnA, ovnB])),
  }),
  row("its load balancer from a pod of its own network", ovn, {
    to: ovn.loadBalancerIP.IPv4,
    from: ovnClient,
    options,
    expected: everyMode(masqueraded([ovnA, ovnB])),
  }),
  row("without a ready endpoint a pod of ours is refused", unready, {
    from: clientA,
    options,
    expected: served(reject),
  }),
  row("without a ready endpoint a pod of its own network is not refused", unready, {
    from: ovnClient,
    options,
    expected: left,
  }),
  row("IPv6 from a pod of ours", dual, {
    to: dual.clusterIP.IPv6,
    from: clientA,
    options,
    expected: served(plain([ovnA], { family: "IPv6" })),
  }),
  row("IPv6 from a pod of its own network", dual, {
    to: dual.clusterIP.IPv6,
    from: ovnClient,
    options,
    expected: left,
  }),
  row("session affinity", sticky, {
    from: clientA,
    options,
    sticky: true,
    expected: served(plain([ovnA, ovnB])),
  }),
  row("internal policy Local", internal, { from: clientA, options, expected: served(plain([ovnA])) }),
  row("internal policy Local from a pod of its own network", internal, { from: ovnClient, options, expected: left }),
  row("masqueradeAll marks no packet that is left", ovn, {
    from: ovnClient,
    options: { ...options, masqueradeAll: true },
    expected: left,
  }),
  row("several excluded CIDRs: a client in one of them", ovn, { from: ovnClient, options: several, expected: left }),
  row("several excluded CIDRs: a client in none of them", ovn, {
    from: clientA,
    options: several,
    expected: served(plain([ovnA, ovnB])),
  }),
  row("the node's own address in an excluded CIDR: the node is served", ovn, {
    from: nodeA,
    options: { ...options, excludeClusterCIDRs: [networks.ovn.IPv4, networks.nodes.IPv4] },
    expected: served(masqueraded([ovnA, ovnB])),
  }),
  row("annotated foreign: a pod of ours is served", annotated, {
    from: clientA,
    options,
    expected: served(plain([webA1])),
  }),
  row("annotated foreign: a pod of the other network is left", annotated, {
    from: ovnClient,
    options,
    expected: left,
  }),
  row("a service of ours is everybody's", ours, {
    from: ovnClient,
    options,
    expected: everyMode(masqueraded([webA1])),
  }),
  row("the service turned foreign while we served it", ovn, {
    before: [workload(181, { endpoints: [webA1], loadBalancer: "VIP" }).objects],
    from: ovnClient,
    options,
    expected: left,
  }),
  row("the service turned ours", workload(188, { endpoints: [webA1] }), {
    before: [workload(188, { endpoints: [ovnA] }).objects],
    from: ovnClient,
    options,
    expected: everyMode(masqueraded([webA1])),
  }),
];
