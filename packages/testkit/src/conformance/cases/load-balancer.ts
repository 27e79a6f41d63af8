/** Packets to load balancers, and what the traffic policies make of them. */

import {
  clientA,
  clientB,
  NETWORKS,
  NODE_A,
  outside,
  ovnClient,
  stranger,
  webA1,
  webA2,
  webB1,
  webB2,
} from "../../addresses.ts";
import { rowsOf, workload } from "../case.ts";
import {
  DROP,
  EMPTY,
  everyMode,
  exceptIptables,
  exceptIpvs,
  LEAVE,
  masqueraded,
  noEndpoints,
  plain,
  skip,
} from "../expected.ts";

const loadBalancerRow = rowsOf("load balancer");

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
const gatedByNothing = workload(49, { endpoints: [webA1], loadBalancer: VIP, sourceRanges: ["the office"] });
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
  loadBalancerRow("from outside", two, { to: two.loadBalancerIP.IPv4, from: outside, expected: everyMode(both) }),
  loadBalancerRow("from a pod inside", two, { to: two.loadBalancerIP.IPv4, from: clientA, expected: everyMode(both) }),
  loadBalancerRow("from a pod of another node", two, {
    to: two.loadBalancerIP.IPv4,
    from: clientB,
    expected: everyMode(both),
  }),
  loadBalancerRow("from a pod of the other network", two, {
    to: two.loadBalancerIP.IPv4,
    from: ovnClient,
    expected: everyMode(both),
  }),
  loadBalancerRow("from the node", two, { ...FROM_NODE, to: two.loadBalancerIP.IPv4, expected: everyMode(both) }),
  loadBalancerRow("ipMode Proxy: the address is the load balancer's own", proxied, {
    to: proxied.loadBalancerIP.IPv4,
    from: clientA,
    expected: everyMode(LEAVE),
  }),
  loadBalancerRow("its node port", two, {
    to: NODE_A.addresses.IPv4,
    port: two.nodePort,
    from: outside,
    expected: everyMode(both),
  }),
  loadBalancerRow("no endpoints: a client outside is refused", none, {
    to: none.loadBalancerIP.IPv4,
    from: outside,
    expected: noEndpoints,
  }),
  loadBalancerRow("Local: from outside to the endpoint here, its source kept", local, {
    to: local.loadBalancerIP.IPv4,
    from: outside,
    expected: everyMode(plain([webA1])),
  }),
  loadBalancerRow("Local: a pod takes the short cut", local, {
    to: local.loadBalancerIP.IPv4,
    from: clientA,
    expected: exceptIpvs(plain([webA1, webB1]), plain([webA1])),
  }),
  loadBalancerRow("Local without an endpoint here: dropped", elsewhere, {
    to: elsewhere.loadBalancerIP.IPv4,
    from: outside,
    expected: exceptIpvs(DROP, plain([webB1])),
  }),
  loadBalancerRow("Local: the health-check port is let in", local, {
    to: NODE_A.addresses.IPv4,
    port: local.healthCheckPort,
    from: outside,
    expected: everyMode(LEAVE),
  }),
  loadBalancerRow("source ranges: a client that is in them", gated, {
    to: gated.loadBalancerIP.IPv4,
    from: outside,
    expected: everyMode(both),
  }),
  loadBalancerRow("source ranges: a client that is not in them is dropped", gated, {
    to: gated.loadBalancerIP.IPv4,
    from: stranger,
    expected: everyMode(DROP),
  }),
  loadBalancerRow("source ranges: a pod that is not in them is dropped", gated, {
    to: gated.loadBalancerIP.IPv4,
    from: clientA,
    expected: everyMode(DROP),
  }),
  loadBalancerRow("source ranges: a pod that is in them", gatedForPods, {
    to: gatedForPods.loadBalancerIP.IPv4,
    from: clientA,
    expected: everyMode(masqueraded([webA1])),
  }),
  loadBalancerRow("source ranges: the node that is in them", gatedForNodes, {
    ...FROM_NODE,
    to: gatedForNodes.loadBalancerIP.IPv4,
    expected: everyMode(both),
  }),
  loadBalancerRow("source ranges: the node that is not in them is dropped", gated, {
    ...FROM_NODE,
    to: gated.loadBalancerIP.IPv4,
    expected: everyMode(DROP),
  }),
  loadBalancerRow("source ranges: the service's own address, where the node is in them", gatedForNodes, {
    from: NODE_A,
    source: gatedForNodes.loadBalancerIP.IPv4,
    to: gatedForNodes.loadBalancerIP.IPv4,
    expected: everyMode(both),
    unreal: skip("the lab's node has no load-balancer address of its own"),
  }),
  loadBalancerRow("source ranges that cannot be read let no client in", gatedByNothing, {
    to: gatedByNothing.loadBalancerIP.IPv4,
    from: outside,
    expected: everyMode(DROP),
  }),
  loadBalancerRow("source ranges do not gate the ClusterIP", gated, {
    from: clientA,
    expected: everyMode(plain([webA1, webB1])),
  }),
  loadBalancerRow("source ranges do not gate the node port", gated, {
    to: NODE_A.addresses.IPv4,
    port: gated.nodePort,
    from: stranger,
    expected: everyMode(both),
  }),
  loadBalancerRow("source ranges under Local: a client that is in them keeps its source", gatedLocal, {
    to: gatedLocal.loadBalancerIP.IPv4,
    from: outside,
    expected: everyMode(plain([webA1])),
  }),
  loadBalancerRow("source ranges under Local: a client that is not in them is dropped", gatedLocal, {
    to: gatedLocal.loadBalancerIP.IPv4,
    from: stranger,
    expected: everyMode(DROP),
  }),
  loadBalancerRow("IPv6 source ranges: a client that is in them", gatedV6, {
    to: gatedV6.loadBalancerIP.IPv6,
    from: outside,
    expected: everyMode(bothV6),
  }),
  loadBalancerRow("IPv6 source ranges: a client that is not in them is dropped", gatedV6, {
    to: gatedV6.loadBalancerIP.IPv6,
    from: stranger,
    expected: everyMode(DROP),
  }),
];

const policyRow = rowsOf("traffic policy");

const internal = workload(71, { endpoints: [webA1, webA2, webB1], internal: "Local" });
const internalElsewhere = workload(72, { endpoints: [webB1], internal: "Local" });
const internalNodePort = workload(73, { endpoints: [webB1], internal: "Local", nodePort: true });
const external = workload(74, { endpoints: [webA1, webB1], externally: "Local", nodePort: true });
const externalElsewhere = workload(75, { endpoints: [webB1, webB2], externally: "Local", nodePort: true });
const externalHere = workload(76, { endpoints: [webA1], externally: "Local", nodePort: true });
const bothLocal = workload(77, {
  endpoints: [webA1, webB1],
  internal: "Local",
  externally: "Local",
  nodePort: true,
});
const dual = workload(78, {
  endpoints: [webA1, webB1],
  externally: "Local",
  nodePort: true,
  families: ["IPv4", "IPv6"],
});

const TO_NODE = { to: NODE_A.addresses.IPv4 } as const;

export const policyCases = [
  policyRow("internal Local: only the endpoints here", internal, {
    from: clientA,
    expected: everyMode(plain([webA1, webA2])),
  }),
  policyRow("internal Local: traffic from outside is still masqueraded", internal, {
    from: outside,
    expected: everyMode(masqueraded([webA1, webA2])),
  }),
  policyRow("internal Local: the node", internal, { from: NODE_A, expected: everyMode(masqueraded([webA1, webA2])) }),
  policyRow("internal Local without an endpoint here: a pod is dropped", internalElsewhere, {
    from: clientA,
    expected: exceptIpvs(DROP, EMPTY),
  }),
  policyRow("internal Local without an endpoint here: the node is dropped", internalElsewhere, {
    from: NODE_A,
    expected: exceptIpvs(DROP, EMPTY),
  }),
  policyRow("internal Local without an endpoint here: its node port serves", internalNodePort, {
    ...TO_NODE,
    port: internalNodePort.nodePort,
    from: outside,
    expected: everyMode(masqueraded([webB1])),
  }),
  policyRow("internal Local without an endpoint here, node port Cluster: the ClusterIP", internalNodePort, {
    from: clientA,
    expected: exceptIpvs(DROP, plain([webB1])),
  }),
  policyRow("external Local: from outside to the endpoint here, its source kept", external, {
    ...TO_NODE,
    port: external.nodePort,
    from: outside,
    expected: everyMode(plain([webA1])),
  }),
  policyRow("external Local: a pod takes the short cut", external, {
    ...TO_NODE,
    port: external.nodePort,
    from: clientA,
    expected: exceptIpvs(plain([webA1, webB1]), plain([webA1])),
  }),
  policyRow("external Local: a pod of another node", externalHere, {
    ...TO_NODE,
    port: externalHere.nodePort,
    from: clientB,
    expected: everyMode(plain([webA1])),
  }),
  policyRow("external Local: the node takes the short cut, masqueraded", external, {
    ...TO_NODE,
    port: external.nodePort,
    from: NODE_A,
    expected: exceptIpvs(masqueraded([webA1, webB1]), plain([webA1])),
  }),
  policyRow("external Local: localhost", external, {
    to: "127.0.0.1",
    source: "127.0.0.1",
    port: external.nodePort,
    from: NODE_A,
    expected: exceptIptables(masqueraded([webA1, webB1]), LEAVE),
  }),
  policyRow("external Local: the ClusterIP goes everywhere", external, {
    from: clientA,
    expected: everyMode(plain([webA1, webB1])),
  }),
  policyRow("external Local without an endpoint here: dropped", externalElsewhere, {
    ...TO_NODE,
    port: externalElsewhere.nodePort,
    from: outside,
    expected: exceptIpvs(DROP, plain([webB1, webB2])),
  }),
  policyRow("external Local without an endpoint here: a pod takes the short cut", externalElsewhere, {
    ...TO_NODE,
    port: externalElsewhere.nodePort,
    from: clientA,
    expected: everyMode(plain([webB1, webB2])),
  }),
  policyRow("external Local without an endpoint here: the node takes the short cut", externalElsewhere, {
    ...TO_NODE,
    port: externalElsewhere.nodePort,
    from: NODE_A,
    expected: exceptIpvs(masqueraded([webB1, webB2]), plain([webB1, webB2])),
  }),
  policyRow("both Local: a pod at the node port", bothLocal, {
    ...TO_NODE,
    port: bothLocal.nodePort,
    from: clientA,
    expected: exceptIpvs(plain([webA1, webB1]), plain([webA1])),
  }),
  policyRow("IPv6 external Local: from outside", dual, {
    to: NODE_A.addresses.IPv6,
    port: dual.nodePort,
    from: outside,
    expected: everyMode(plain([webA1], { family: "IPv6" })),
  }),
  policyRow("IPv6 external Local: the node takes the short cut", dual, {
    to: NODE_A.addresses.IPv6,
    port: dual.nodePort,
    from: NODE_A,
    expected: exceptIpvs(masqueraded([webA1, webB1], { family: "IPv6" }), plain([webA1], { family: "IPv6" })),
  }),
];
