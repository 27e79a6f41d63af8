import { clientA, type Host, NODE_A, outside, webA1, webA2, webB1, webB2 } from "../../addresses.ts";
import { rowsOf, workload } from "../case.ts";
import { everyMode, masqueraded, plain } from "../expected.ts";

const row = rowsOf("topology");

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
const local = workload(96, {
  endpoints: [zone(webA1, "z2"), zone(webB1, "z1")],
  externally: "Local",
  nodePort: true,
});
const unreadyWithout = workload(97, {
  endpoints: [zone(webA1, "z1"), zone(webB1, "z2"), { host: webB2, ready: false }],
});
const external = workload(98, { endpoints: [zone(webA1, "z1"), zone(webB1, "z2")], nodePort: true });

export const topologyCases = [
  row("zone hints: the endpoints for this zone", zones, { from: clientA, expected: everyMode(plain([webA1, webB2])) }),
  row("one ready endpoint without hints: all are used", oneWithout, {
    from: clientA,
    expected: everyMode(plain([webA1, webB1])),
  }),
  row("no hint for this zone: all are used", otherZones, {
    from: clientA,
    expected: everyMode(plain([webA1, webB1])),
  }),
  row("node hints come before zone hints", nodes, { from: clientA, expected: everyMode(plain([webA1])) }),
  row("no hint for this node: the zone's are used", otherNodes, {
    from: clientA,
    expected: everyMode(plain([webA1])),
  }),
  row("hints never narrow the local set", local, {
    to: NODE_A.addresses.IPv4,
    port: local.nodePort,
    from: outside,
    expected: everyMode(plain([webA1])),
  }),
  row("an endpoint that is not ready needs no hint", unreadyWithout, {
    from: clientA,
    expected: everyMode(plain([webA1])),
  }),
  row("hints hold at the node port too", external, {
    to: NODE_A.addresses.IPv4,
    port: external.nodePort,
    from: outside,
    expected: everyMode(masqueraded([webA1])),
  }),
];
