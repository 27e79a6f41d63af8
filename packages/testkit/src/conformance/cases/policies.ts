import { clientA, clientB, nodeA, outside, webA1, webA2, webB1, webB2 } from "../../addresses/hosts.ts";
import { drop, empty, everyMode, exceptIptables, exceptIpvs, leave, masqueraded, plain } from "../expected.ts";
import { rowsOf } from "../row.ts";
import { workload } from "../workload.ts";

const row = rowsOf("traffic policy");

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

const toNode = { to: nodeA.addresses.IPv4 } as const;

export const policyCases = [
  row("internal Local: the endpoints here alone", internal, {
    from: clientA,
    expected: everyMode(plain([webA1, webA2])),
  }),
  row("internal Local: traffic from outside is still masqueraded", internal, {
    from: outside,
    expected: everyMode(masqueraded([webA1, webA2])),
  }),
  row("internal Local: the node", internal, { from: nodeA, expected: everyMode(masqueraded([webA1, webA2])) }),
  row("internal Local without an endpoint here: a pod is dropped", internalElsewhere, {
    from: clientA,
    expected: exceptIpvs(drop, empty),
  }),
  row("internal Local without an endpoint here: the node is dropped", internalElsewhere, {
    from: nodeA,
    expected: exceptIpvs(drop, empty),
  }),
  row("internal Local without an endpoint here: its node port serves", internalNodePort, {
    ...toNode,
    port: internalNodePort.nodePort,
    from: outside,
    expected: everyMode(masqueraded([webB1])),
  }),
  row("internal Local without an endpoint here, node port Cluster: the ClusterIP", internalNodePort, {
    from: clientA,
    expected: exceptIpvs(drop, plain([webB1])),
  }),
  row("external Local: from outside to the endpoint here, its source kept", external, {
    ...toNode,
    port: external.nodePort,
    from: outside,
    expected: everyMode(plain([webA1])),
  }),
  row("external Local: a pod takes the short cut", external, {
    ...toNode,
    port: external.nodePort,
    from: clientA,
    expected: exceptIpvs(plain([webA1, webB1]), plain([webA1])),
  }),
  row("external Local: a pod of another node", externalHere, {
    ...toNode,
    port: externalHere.nodePort,
    from: clientB,
    expected: everyMode(plain([webA1])),
  }),
  row("external Local: the node takes the short cut, masqueraded", external, {
    ...toNode,
    port: external.nodePort,
    from: nodeA,
    expected: exceptIpvs(masqueraded([webA1, webB1]), plain([webA1])),
  }),
  row("external Local: localhost", external, {
    to: "127.0.0.1",
    source: "127.0.0.1",
    port: external.nodePort,
    from: nodeA,
    expected: exceptIptables(masqueraded([webA1, webB1]), leave),
  }),
  row("external Local: the ClusterIP goes everywhere", external, {
    from: clientA,
    expected: everyMode(plain([webA1, webB1])),
  }),
  row("external Local without an endpoint here: dropped", externalElsewhere, {
    ...toNode,
    port: externalElsewhere.nodePort,
    from: outside,
    expected: exceptIpvs(drop, plain([webB1, webB2])),
  }),
  row("external Local without an endpoint here: a pod takes the short cut", externalElsewhere, {
    ...toNode,
    port: externalElsewhere.nodePort,
    from: clientA,
    expected: everyMode(plain([webB1, webB2])),
  }),
  row("external Local without an endpoint here: the node takes the short cut", externalElsewhere, {
    ...toNode,
    port: externalElsewhere.nodePort,
    from: nodeA,
    expected: exceptIpvs(masqueraded([webB1, webB2]), plain([webB1, webB2])),
  }),
  row("both Local: a pod at the node port", bothLocal, {
    ...toNode,
    port: bothLocal.nodePort,
    from: clientA,
    expected: exceptIpvs(plain([webA1, webB1]), plain([webA1])),
  }),
  row("IPv6 external Local: from outside", dual, {
    to: nodeA.addresses.IPv6,
    port: dual.nodePort,
    from: outside,
    expected: everyMode(plain([webA1], { family: "IPv6" })),
  }),
  row("IPv6 external Local: the node takes the short cut", dual, {
    to: nodeA.addresses.IPv6,
    port: dual.nodePort,
    from: nodeA,
    expected: exceptIpvs(masqueraded([webA1, webB1], { family: "IPv6" }), plain([webA1], { family: "IPv6" })),
  }),
];
