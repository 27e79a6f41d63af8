import { clientA, NODE_A, outside, webA1, webA2, webB1 } from "../../addresses.ts";
import { rowsOf, workload } from "../case.ts";
import { everyMode, exceptIpvs, masqueraded, plain } from "../expected.ts";

const row = rowsOf("affinity");

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
  row("a pod stays with its endpoint", web, {
    from: clientA,
    sticky: STICKY,
    expected: everyMode(plain([webA1, webA2, webB1])),
  }),
  row("the node stays with its endpoint", web, {
    from: NODE_A,
    sticky: STICKY,
    expected: everyMode(masqueraded([webA1, webA2, webB1])),
  }),
  row("at the node port", web, {
    to: NODE_A.addresses.IPv4,
    port: web.nodePort,
    from: outside,
    sticky: STICKY,
    expected: everyMode(masqueraded([webA1, webA2, webB1])),
  }),
  row("UDP", udp, { from: clientA, protocol: "UDP", sticky: STICKY, expected: everyMode(plain([webA1, webB1])) }),
  row("IPv6", dual, {
    from: clientA,
    to: dual.clusterIP.IPv6,
    sticky: STICKY,
    expected: everyMode(plain([webA1, webB1], { family: "IPv6" })),
  }),
  row("external Local", local, {
    to: NODE_A.addresses.IPv4,
    port: local.nodePort,
    from: outside,
    sticky: STICKY,
    expected: everyMode(plain([webA1, webA2])),
  }),
  row("external Local: a pod takes the short cut", local, {
    to: NODE_A.addresses.IPv4,
    port: local.nodePort,
    from: clientA,
    sticky: STICKY,
    expected: exceptIpvs(plain([webA1, webA2, webB1]), plain([webA1, webA2])),
  }),
];
