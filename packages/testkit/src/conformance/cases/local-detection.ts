import { clientA, clientB, NODE_A, outside, ovnClient, webA1, webB1 } from "../../addresses.ts";
import { rowsOf, workload } from "../case.ts";
import { everyMode, exceptIpvs, masqueraded, plain } from "../expected.ts";
import type { AgentOptions } from "../options.ts";

const row = rowsOf("local detection");

const here = workload(151, { endpoints: [webA1] });
const local = workload(152, { endpoints: [webA1, webB1], nodePort: true, externally: "Local" });

const PREFIX: Partial<AgentOptions> = { detectLocal: { kind: "interface-prefix", prefix: "cali" } };
const NODE_CIDRS: Partial<AgentOptions> = { detectLocal: { kind: "node-cidrs" } };
const NONE: Partial<AgentOptions> = { detectLocal: { kind: "none" } };

export const localDetectionCases = [
  row("interface prefix: a pod behind such an interface", here, {
    from: clientA,
    options: PREFIX,
    expected: everyMode(plain([webA1])),
  }),
  row("interface prefix: a pod of another node is masqueraded", here, {
    from: clientB,
    options: PREFIX,
    expected: everyMode(masqueraded([webA1])),
  }),
  row("interface prefix: a pod of the other network is masqueraded", here, {
    from: ovnClient,
    options: PREFIX,
    expected: everyMode(masqueraded([webA1])),
  }),
  row("interface prefix: the node is masqueraded", here, {
    from: NODE_A,
    options: PREFIX,
    expected: everyMode(masqueraded([webA1])),
  }),
  row("interface prefix: a pod takes the short cut", local, {
    to: NODE_A.addresses.IPv4,
    port: local.nodePort,
    from: clientA,
    options: PREFIX,
    expected: exceptIpvs(plain([webA1, webB1]), plain([webA1])),
  }),
  row("node CIDRs: a pod of this node", here, {
    from: clientA,
    options: NODE_CIDRS,
    expected: everyMode(plain([webA1])),
  }),
  row("node CIDRs: a pod of another node is masqueraded", here, {
    from: clientB,
    options: NODE_CIDRS,
    expected: everyMode(masqueraded([webA1])),
  }),
  row("none: nobody is masqueraded at the ClusterIP", here, {
    from: outside,
    options: NONE,
    expected: everyMode(plain([webA1])),
  }),
];
