import { clientA, NODE_A, outside, ovnA, ovnB, webA1, webB1, webB2 } from "../../addresses.ts";
import { rowsOf, workload } from "../case.ts";
import { DROP, everyMode, exceptIpvs, LEAVE, masqueraded, noEndpoints, plain } from "../expected.ts";

const row = rowsOf("mixed");

const mixed = workload(121, { endpoints: [webA1, webB1, ovnA, ovnB], nodePort: true });
const ownUnready = workload(122, { endpoints: [{ host: webA1, ready: false }, ovnA] });
const localExcluded = workload(123, { endpoints: [webB1, ovnA], nodePort: true, externally: "Local" });
const hinted = workload(124, {
  endpoints: [{ host: webA1, zoneHints: ["z1"] }, { host: webB1, zoneHints: ["z2"] }, ovnB],
});
const annotated = workload(125, {
  endpoints: [webA1, ovnA],
  annotations: { "fairlead.dev/ownership": "ours" },
});
const dual = workload(126, { endpoints: [webB2, ovnA], families: ["IPv4", "IPv6"] });

const SKIPPED = { mixedServices: "skip" } as const;
const ALL = { mixedServices: "all" } as const;

export const mixedCases = [
  row("own-endpoints: those outside of the excluded network", mixed, {
    from: clientA,
    expected: everyMode(plain([webA1, webB1])),
  }),
  row("own-endpoints: the node port", mixed, {
    to: NODE_A.addresses.IPv4,
    port: mixed.nodePort,
    from: outside,
    expected: everyMode(masqueraded([webA1, webB1])),
  }),
  row("own-endpoints: with none of them ready it is refused", ownUnready, { from: clientA, expected: noEndpoints }),
  row("own-endpoints: an excluded endpoint here is no endpoint here", localExcluded, {
    to: NODE_A.addresses.IPv4,
    port: localExcluded.nodePort,
    from: outside,
    expected: exceptIpvs(DROP, plain([webB1])),
  }),
  row("own-endpoints: an excluded endpoint without hints does not undo the others'", hinted, {
    from: clientA,
    expected: everyMode(plain([webA1])),
  }),
  row("own-endpoints: IPv6", dual, {
    to: dual.clusterIP.IPv6,
    from: clientA,
    expected: everyMode(plain([webB2], { family: "IPv6" })),
  }),
  row("skip: left", mixed, { from: clientA, options: SKIPPED, expected: everyMode(LEAVE) }),
  row("skip: the node port is left", mixed, {
    to: NODE_A.addresses.IPv4,
    port: mixed.nodePort,
    from: outside,
    options: SKIPPED,
    expected: everyMode(LEAVE),
  }),
  row("all: every endpoint", mixed, {
    from: clientA,
    options: ALL,
    expected: everyMode(plain([webA1, webB1, ovnA, ovnB])),
  }),
  row("annotated ours: every endpoint", annotated, { from: clientA, expected: everyMode(plain([webA1, ovnA])) }),
];
