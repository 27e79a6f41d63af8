import { clientA, clientB, NODE_A, outside, webA1, webA2, webB1, webB2 } from "../../addresses.ts";
import { rowsOf, workload } from "../case.ts";
import { DROP, EMPTY, everyMode, exceptIptables, exceptIpvs, LEAVE, masqueraded, plain } from "../expected.ts";

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

const TO_NODE = { to: NODE_A.addresses.IPv4 } as const;

export const policyCases = [
  row("internal Local: the endpoints here alone", internal, {
    from: clientA,
    expected: everyMode(plain([webA1, webA2])),
  }),
  row("internal Local: traffic from outside is still masqueraded", internal, {
    from: outside,
    expected: everyMode(masqueraded([webA1, webA2])),
  }),
  row("internal Local: the node", internal, { from: NODE_A, expected: everyMode(masqueraded([webA1, webA2])) }),
  row("internal Local without an endpoint here: a pod is dropped", internalElsewhere, {
    from: clientA,
    expected: exceptIpvs(DROP, EMPTY),
  }),
  row("internal Local without an endpoint here: the node is dropped", internalElsewhere, {
    from: NODE_A,
    expected: exceptIpvs(DROP, EMPTY),
  }),
  row("internal Local without an endpoint here: its node port serves", internalNodePort, {
    ...TO_NODE,
    port: internalNodePort.nodePort,
    from: outside,
    expected: everyMode(masqueraded([webB1])),
  }),
  row("internal Local without an endpoint here, node port Cluster: the ClusterIP", internalNodePort, {
    from: clientA,
    expected: exceptIpvs(DROP, plain([webB1])),
  }),
  row("external Local: from outside to the endpoint here, its source kept", external, {
    ...TO_NODE,
    port: external.nodePort,
    from: outside,
    expected: everyMode(plain([webA1])),
  }),
  row("external Local: a pod takes the short cut", external, {
    ...TO_NODE,
    port: external.nodePort,
    from: clientA,
    expected: exceptIpvs(plain([webA1, webB1]), plain([webA1])),
  }),
  row("external Local: a pod of another node", externalHere, {
    ...TO_NODE,
    port: externalHere.nodePort,
    from: clientB,
    expected: everyMode(plain([webA1])),
  }),
  row("external Local: the node takes the short cut, masqueraded", external, {
    ...TO_NODE,
    port: external.nodePort,
    from: NODE_A,
    expected: exceptIpvs(masqueraded([webA1, webB1]), plain([webA1])),
  }),
  row("external Local: localhost", external, {
    to: "127.0.0.1",
    source: "127.0.0.1",
    port: external.nodePort,
    from: NODE_A,
    expected: exceptIptables(masqueraded([webA1, webB1]), LEAVE),
  }),
  row("external Local: the ClusterIP goes everywhere", external, {
    from: clientA,
    expected: everyMode(plain([webA1, webB1])),
  }),
  row("external Local without an endpoint here: dropped", externalElsewhere, {
    ...TO_NODE,
    port: externalElsewhere.nodePort,
    from: outside,
    expected: exceptIpvs(DROP, plain([webB1, webB2])),
  }),
  row("external Local without an endpoint here: a pod takes the short cut", externalElsewhere, {
    ...TO_NODE,
    port: externalElsewhere.nodePort,
    from: clientA,
    expected: everyMode(plain([webB1, webB2])),
  }),
  row("external Local without an endpoint here: the node takes the short cut", externalElsewhere, {
    ...TO_NODE,
    port: externalElsewhere.nodePort,
    from: NODE_A,
    expected: exceptIpvs(masqueraded([webB1, webB2]), plain([webB1, webB2])),
  }),
  row("both Local: a pod at the node port", bothLocal, {
    ...TO_NODE,
    port: bothLocal.nodePort,
    from: clientA,
    expected: exceptIpvs(plain([webA1, webB1]), plain([webA1])),
  }),
  row("IPv6 external Local: from outside", dual, {
    to: NODE_A.addresses.IPv6,
    port: dual.nodePort,
    from: outside,
    expected: everyMode(plain([webA1], { family: "IPv6" })),
  }),
  row("IPv6 external Local: the node takes the short cut", dual, {
    to: NODE_A.addresses.IPv6,
    port: dual.nodePort,
    from: NODE_A,
    expected: exceptIpvs(masqueraded([webA1, webB1], { family: "IPv6" }), plain([webA1], { family: "IPv6" })),
  }),
];
