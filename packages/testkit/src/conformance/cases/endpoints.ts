/** Which of a service's endpoints get a connection: terminating ones, hints, session affinity. */

import { clientA, type Host, NODE_A, outside, webA1, webA2, webB1, webB2 } from "../../addresses.ts";
import { rowsOf, workload } from "../case.ts";
import { everyMode, exceptIpvs, masqueraded, noEndpoints, plain } from "../expected.ts";

const terminatingRow = rowsOf("terminating");

const serving = (host: Host) => ({ host, ready: false, serving: true, terminating: true });
const gone = (host: Host) => ({ host, ready: false, serving: false, terminating: true });

const someReady = workload(81, { endpoints: [webA1, serving(webB1)] });
const allServing = workload(82, { endpoints: [serving(webA1), serving(webB1), gone(webA2)] });
const allGone = workload(83, { endpoints: [gone(webA1), gone(webB1)] });
const localServing = workload(84, { endpoints: [serving(webA1), webB1], externally: "Local", nodePort: true });
const localGone = workload(85, { endpoints: [gone(webA1), webB1], externally: "Local", nodePort: true });
const internalServing = workload(86, { endpoints: [serving(webA1), webB1], internal: "Local" });
const localMixed = workload(87, { endpoints: [webA1, serving(webA2), webB1], externally: "Local", nodePort: true });

const TO_NODE = { to: NODE_A.addresses.IPv4 } as const;

export const terminatingCases = [
  terminatingRow("ready endpoints are preferred", someReady, { from: clientA, expected: everyMode(plain([webA1])) }),
  terminatingRow("with none ready, those that still serve", allServing, {
    from: clientA,
    expected: everyMode(plain([webA1, webB1])),
  }),
  terminatingRow("those that no longer serve get nothing", allGone, { from: clientA, expected: noEndpoints }),
  terminatingRow("external Local: the one here that still serves", localServing, {
    ...TO_NODE,
    port: localServing.nodePort,
    from: outside,
    expected: everyMode(plain([webA1])),
  }),
  terminatingRow("external Local: the ClusterIP goes to the ready one elsewhere", localServing, {
    from: clientA,
    expected: everyMode(plain([webB1])),
  }),
  terminatingRow("external Local: a pod at the node port goes to the ready one elsewhere", localServing, {
    ...TO_NODE,
    port: localServing.nodePort,
    from: clientA,
    expected: exceptIpvs(plain([webB1]), plain([webA1])),
  }),
  terminatingRow("external Local: the one here no longer serves", localGone, {
    ...TO_NODE,
    port: localGone.nodePort,
    from: outside,
    expected: exceptIpvs({ verdict: "drop" }, plain([webB1])),
  }),
  terminatingRow("internal Local: the one here that still serves", internalServing, {
    from: clientA,
    expected: everyMode(plain([webA1])),
  }),
  terminatingRow("external Local: a ready one here is preferred", localMixed, {
    ...TO_NODE,
    port: localMixed.nodePort,
    from: outside,
    expected: everyMode(plain([webA1])),
  }),
  terminatingRow("with none ready, the node's own traffic", allServing, {
    from: NODE_A,
    expected: everyMode(masqueraded([webA1, webB1])),
  }),
];

const topologyRow = rowsOf("topology");

const zone = (host: Host, ...zoneHints: string[]) => ({ host, zoneHints });
const onNode = (host: Host, nodeName: string, zoneName: string) => ({
  host,
  nodeHints: [nodeName],
  zoneHints: [zoneName],
});

const zones = workload(91, { endpoints: [zone(webA1, "z1"), zone(webB1, "z2"), zone(webB2, "z1", "z2")] });
const oneWithout = workload(92, { endpoints: [zone(webA1, "z1"), webB1] });
const otherZones = workload(93, { endpoints: [zone(webA1, "z2"), zone(webB1, "z3")] });
const nodes = workload(94, {
  endpoints: [onNode(webA1, "node-a", "z1"), onNode(webA2, "node-b", "z1"), onNode(webB1, "node-b", "z2")],
});
const otherNodes = workload(95, { endpoints: [onNode(webA1, "node-c", "z1"), onNode(webB1, "node-b", "z2")] });
const topologyLocal = workload(96, {
  endpoints: [zone(webA1, "z2"), zone(webB1, "z1")],
  externally: "Local",
  nodePort: true,
});
const unreadyWithout = workload(97, {
  endpoints: [zone(webA1, "z1"), zone(webB1, "z2"), { host: webB2, ready: false }],
});
const external = workload(98, { endpoints: [zone(webA1, "z1"), zone(webB1, "z2")], nodePort: true });

export const topologyCases = [
  topologyRow("zone hints: the endpoints for this zone", zones, {
    from: clientA,
    expected: everyMode(plain([webA1, webB2])),
  }),
  topologyRow("one ready endpoint without hints: all are used", oneWithout, {
    from: clientA,
    expected: everyMode(plain([webA1, webB1])),
  }),
  topologyRow("no hint for this zone: all are used", otherZones, {
    from: clientA,
    expected: everyMode(plain([webA1, webB1])),
  }),
  topologyRow("node hints come before zone hints", nodes, { from: clientA, expected: everyMode(plain([webA1])) }),
  topologyRow("no hint for this node: the zone's are used", otherNodes, {
    from: clientA,
    expected: everyMode(plain([webA1])),
  }),
  topologyRow("hints never narrow the local set", topologyLocal, {
    to: NODE_A.addresses.IPv4,
    port: topologyLocal.nodePort,
    from: outside,
    expected: everyMode(plain([webA1])),
  }),
  topologyRow("an endpoint that is not ready needs no hint", unreadyWithout, {
    from: clientA,
    expected: everyMode(plain([webA1])),
  }),
  topologyRow("hints hold at the node port too", external, {
    to: NODE_A.addresses.IPv4,
    port: external.nodePort,
    from: outside,
    expected: everyMode(masqueraded([webA1])),
  }),
];

const affinityRow = rowsOf("affinity");

const web = workload(101, { endpoints: [webA1, webA2, webB1], affinitySeconds: 600, nodePort: true });
const udp = workload(102, { endpoints: [webA1, webB1], affinitySeconds: 600, protocol: "UDP" });
const dual = workload(103, { endpoints: [webA1, webB1], affinitySeconds: 600, families: ["IPv4", "IPv6"] });
const local = workload(104, {
  endpoints: [webA1, webA2, webB1],
  affinitySeconds: 600,
  nodePort: true,
  externally: "Local",
});

const STICKY = true;

export const affinityCases = [
  affinityRow("a pod stays with its endpoint", web, {
    from: clientA,
    sticky: STICKY,
    expected: everyMode(plain([webA1, webA2, webB1])),
  }),
  affinityRow("the node stays with its endpoint", web, {
    from: NODE_A,
    sticky: STICKY,
    expected: everyMode(masqueraded([webA1, webA2, webB1])),
  }),
  affinityRow("at the node port", web, {
    to: NODE_A.addresses.IPv4,
    port: web.nodePort,
    from: outside,
    sticky: STICKY,
    expected: everyMode(masqueraded([webA1, webA2, webB1])),
  }),
  affinityRow("UDP", udp, {
    from: clientA,
    protocol: "UDP",
    sticky: STICKY,
    expected: everyMode(plain([webA1, webB1])),
  }),
  affinityRow("IPv6", dual, {
    from: clientA,
    to: dual.clusterIP.IPv6,
    sticky: STICKY,
    expected: everyMode(plain([webA1, webB1], { family: "IPv6" })),
  }),
  affinityRow("external Local", local, {
    to: NODE_A.addresses.IPv4,
    port: local.nodePort,
    from: outside,
    sticky: STICKY,
    expected: everyMode(plain([webA1, webA2])),
  }),
  affinityRow("external Local: a pod takes the short cut", local, {
    to: NODE_A.addresses.IPv4,
    port: local.nodePort,
    from: clientA,
    sticky: STICKY,
    expected: exceptIpvs(plain([webA1, webA2, webB1]), plain([webA1, webA2])),
  }),
];
