import { clientA, clientB, NETWORKS, NODE_A, outside, ovnClient, stranger, webA1, webB1 } from "../../addresses.ts";
import { rowsOf, workload } from "../case.ts";
import { DROP, everyMode, exceptIpvs, LEAVE, masqueraded, noEndpoints, plain, skip } from "../expected.ts";

const row = rowsOf("load balancer");

const both = masqueraded([webA1, webB1]);
const VIP = "VIP";

const two = workload(51, { endpoints: [webA1, webB1], loadBalancer: VIP });
const proxied = workload(52, { endpoints: [webA1], loadBalancer: "Proxy" });
const none = workload(53, { endpoints: [], loadBalancer: VIP });
const local = workload(54, { endpoints: [webA1, webB1], loadBalancer: VIP, externally: "Local" });
const elsewhere = workload(55, { endpoints: [webB1], loadBalancer: VIP, externally: "Local" });
const gated = workload(56, { endpoints: [webA1, webB1], loadBalancer: VIP, sourceRanges: [NETWORKS.outside.IPv4] });
const gatedForNodes = workload(57, {
  endpoints: [webA1, webB1],
  loadBalancer: VIP,
  sourceRanges: [NETWORKS.outside.IPv4, NETWORKS.nodes.IPv4],
});
const gatedForPods = workload(58, { endpoints: [webA1], loadBalancer: VIP, sourceRanges: [NETWORKS.calico.IPv4] });
const gatedLocal = workload(59, {
  endpoints: [webA1, webB1],
  loadBalancer: VIP,
  externally: "Local",
  sourceRanges: [NETWORKS.outside.IPv4],
});
const gatedV6 = workload(60, {
  endpoints: [webA1, webB1],
  loadBalancer: VIP,
  families: ["IPv6"],
  sourceRanges: [NETWORKS.outside.IPv6],
});

const FROM_NODE = { from: NODE_A } as const;
const bothV6 = masqueraded([webA1, webB1], { family: "IPv6" });

export const loadBalancerCases = [
  row("from outside", two, { to: two.loadBalancerIP.IPv4, from: outside, expected: everyMode(both) }),
  row("from a pod inside", two, { to: two.loadBalancerIP.IPv4, from: clientA, expected: everyMode(both) }),
  row("from a pod of another node", two, { to: two.loadBalancerIP.IPv4, from: clientB, expected: everyMode(both) }),
  row("from a pod of the other network", two, {
    to: two.loadBalancerIP.IPv4,
    from: ovnClient,
    expected: everyMode(both),
  }),
  row("from the node", two, { ...FROM_NODE, to: two.loadBalancerIP.IPv4, expected: everyMode(both) }),
  row("ipMode Proxy: the address is the load balancer's own", proxied, {
    to: proxied.loadBalancerIP.IPv4,
    from: clientA,
    expected: everyMode(LEAVE),
  }),
  row("its node port", two, {
    to: NODE_A.addresses.IPv4,
    port: two.nodePort,
    from: outside,
    expected: everyMode(both),
  }),
  row("no endpoints: somebody outside is refused", none, {
    to: none.loadBalancerIP.IPv4,
    from: outside,
    expected: noEndpoints,
  }),
  row("Local: from outside to the endpoint here, its source kept", local, {
    to: local.loadBalancerIP.IPv4,
    from: outside,
    expected: everyMode(plain([webA1])),
  }),
  row("Local: a pod takes the short cut", local, {
    to: local.loadBalancerIP.IPv4,
    from: clientA,
    expected: exceptIpvs(plain([webA1, webB1]), plain([webA1])),
  }),
  row("Local without an endpoint here: dropped", elsewhere, {
    to: elsewhere.loadBalancerIP.IPv4,
    from: outside,
    expected: exceptIpvs(DROP, plain([webB1])),
  }),
  row("Local: the health-check port is let in", local, {
    to: NODE_A.addresses.IPv4,
    port: local.healthCheckPort,
    from: outside,
    expected: everyMode(LEAVE),
  }),
  row("source ranges: one who is in them", gated, {
    to: gated.loadBalancerIP.IPv4,
    from: outside,
    expected: everyMode(both),
  }),
  row("source ranges: one who is not in them is dropped", gated, {
    to: gated.loadBalancerIP.IPv4,
    from: stranger,
    expected: everyMode(DROP),
  }),
  row("source ranges: a pod that is not in them is dropped", gated, {
    to: gated.loadBalancerIP.IPv4,
    from: clientA,
    expected: everyMode(DROP),
  }),
  row("source ranges: a pod that is in them", gatedForPods, {
    to: gatedForPods.loadBalancerIP.IPv4,
    from: clientA,
    expected: everyMode(masqueraded([webA1])),
  }),
  row("source ranges: the node that is in them", gatedForNodes, {
    ...FROM_NODE,
    to: gatedForNodes.loadBalancerIP.IPv4,
    expected: everyMode(both),
  }),
  row("source ranges: the node that is not in them is dropped", gated, {
    ...FROM_NODE,
    to: gated.loadBalancerIP.IPv4,
    expected: everyMode(DROP),
  }),
  row("source ranges: the service's own address, where the node is in them", gatedForNodes, {
    from: NODE_A,
    source: gatedForNodes.loadBalancerIP.IPv4,
    to: gatedForNodes.loadBalancerIP.IPv4,
    expected: everyMode(both),
    unreal: skip("the lab's node has no load-balancer address of its own"),
  }),
  row("source ranges do not gate the ClusterIP", gated, { from: clientA, expected: everyMode(plain([webA1, webB1])) }),
  row("source ranges do not gate the node port", gated, {
    to: NODE_A.addresses.IPv4,
    port: gated.nodePort,
    from: stranger,
    expected: everyMode(both),
  }),
  row("source ranges under Local: one who is in them keeps its source", gatedLocal, {
    to: gatedLocal.loadBalancerIP.IPv4,
    from: outside,
    expected: everyMode(plain([webA1])),
  }),
  row("source ranges under Local: one who is not in them is dropped", gatedLocal, {
    to: gatedLocal.loadBalancerIP.IPv4,
    from: stranger,
    expected: everyMode(DROP),
  }),
  row("IPv6 source ranges: one who is in them", gatedV6, {
    to: gatedV6.loadBalancerIP.IPv6,
    from: outside,
    expected: everyMode(bothV6),
  }),
  row("IPv6 source ranges: one who is not in them is dropped", gatedV6, {
    to: gatedV6.loadBalancerIP.IPv6,
    from: stranger,
    expected: everyMode(DROP),
  }),
];
