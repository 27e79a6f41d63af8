import { clientA, type Host, NODE_A, outside, webA1, webA2, webB1 } from "../../addresses.ts";
import { rowsOf, workload } from "../case.ts";
import { everyMode, exceptIpvs, masqueraded, noEndpoints, plain } from "../expected.ts";

const row = rowsOf("terminating");

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
  row("ready endpoints are preferred", someReady, { from: clientA, expected: everyMode(plain([webA1])) }),
  row("with none ready, those that still serve", allServing, {
    from: clientA,
    expected: everyMode(plain([webA1, webB1])),
  }),
  row("those that no longer serve get nothing", allGone, { from: clientA, expected: noEndpoints }),
  row("external Local: the one here that still serves", localServing, {
    ...TO_NODE,
    port: localServing.nodePort,
    from: outside,
    expected: everyMode(plain([webA1])),
  }),
  row("external Local: the ClusterIP goes to the ready one elsewhere", localServing, {
    from: clientA,
    expected: everyMode(plain([webB1])),
  }),
  row("external Local: a pod at the node port goes to the ready one elsewhere", localServing, {
    ...TO_NODE,
    port: localServing.nodePort,
    from: clientA,
    expected: exceptIpvs(plain([webB1]), plain([webA1])),
  }),
  row("external Local: the one here no longer serves", localGone, {
    ...TO_NODE,
    port: localGone.nodePort,
    from: outside,
    expected: exceptIpvs({ verdict: "drop" }, plain([webB1])),
  }),
  row("internal Local: the one here that still serves", internalServing, {
    from: clientA,
    expected: everyMode(plain([webA1])),
  }),
  row("external Local: a ready one here is preferred", localMixed, {
    ...TO_NODE,
    port: localMixed.nodePort,
    from: outside,
    expected: everyMode(plain([webA1])),
  }),
  row("with none ready, the node's own traffic", allServing, {
    from: NODE_A,
    expected: everyMode(masqueraded([webA1, webB1])),
  }),
];
