import { clientA, nodeA, outside, ovnA, ovnB, webA1, webB1, webB2 } from "../../addresses/hosts.ts";
import { drop, everyMode, exceptIpvs, leave, masqueraded, noEndpoints, plain } from "../expected.ts";
import { rowsOf } from "../row.ts";
import { workload } from "../workload.ts";

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

const skipped = { mixedServices: "skip" } as const;
const all = { mixedServices: "all" } as const;

export const mixedCases = [
  row("own-endpoints: those outside of the excluded network", mixed, {
    from: clientA,
    expected: everyMode(plain([webA1, webB1])),
  }),
  row("own-endpoints: the node port", mixed, {
    to: nodeA.addresses.IPv4,
    port: mixed.nodePort,
    from: outside,
    expected: everyMode(masqueraded([webA1, webB1])),
  }),
  row("own-endpoints: with none of them ready it is refused", ownUnready, { from: clientA, expected: noEndpoints }),
  row("own-endpoints: an excluded endpoint here is no endpoint here", localExcluded, {
    to: nodeA.addresses.IPv4,
    port: localExcluded.nodePort,
    from: outside,
    expected: exceptIpvs(drop, plain([webB1])),
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
  row("skip: left", mixed, { from: clientA, options: skipped, expected: everyMode(leave) }),
  row("skip: the node port is left", mixed, {
    to: nodeA.addresses.IPv4,
    port: mixed.nodePort,
    from: outside,
    options: skipped,
    expected: everyMode(leave),
  }),
  row("all: every endpoint", mixed, {
    from: clientA,
    options: all,
    expected: everyMode(plain([webA1, webB1, ovnA, ovnB])),
  }),
  row("annotated ours: every endpoint", annotated, { from: clientA, expected: everyMode(plain([webA1, ovnA])) }),
];
