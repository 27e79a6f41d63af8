import { clientA, clientB, nodeA, outside, ovnClient, webA1, webB1 } from "../../addresses/hosts.ts";
import { everyMode, exceptIpvs, masqueraded, plain } from "../expected.ts";
import type { AgentOptions } from "../options.ts";
import { rowsOf } from "../row.ts";
import { workload } from "../workload.ts";

const row = rowsOf("local detection");

const here = workload(151, { endpoints: [webA1] });
const local = workload(152, { endpoints: [webA1, webB1], nodePort: true, externally: "Local" });

const prefix: Partial<AgentOptions> = { detectLocal: { kind: "interface-prefix", prefix: "cali" } };
const nodeCIDRs: Partial<AgentOptions> = { detectLocal: { kind: "node-cidrs" } };
const none: Partial<AgentOptions> = { detectLocal: { kind: "none" } };

export const localDetectionCases = [
  row("interface prefix: a pod behind such an interface", here, {
    from: clientA,
    options: prefix,
    expected: everyMode(plain([webA1])),
  }),
  row("interface prefix: a pod of another node is masqueraded", here, {
    from: clientB,
    options: prefix,
    expected: everyMode(masqueraded([webA1])),
  }),
  row("interface prefix: a pod of the other network is masqueraded", here, {
    from: ovnClient,
    options: prefix,
    expected: everyMode(masqueraded([webA1])),
  }),
  row("interface prefix: the node is masqueraded", here, {
    from: nodeA,
    options: prefix,
    expected: everyMode(masqueraded([webA1])),
  }),
  row("interface prefix: a pod takes the short cut", local, {
    to: nodeA.addresses.IPv4,
    port: local.nodePort,
    from: clientA,
    options: prefix,
    expected: exceptIpvs(plain([webA1, webB1]), plain([webA1])),
  }),
  row("node CIDRs: a pod of this node", here, {
    from: clientA,
    options: nodeCIDRs,
    expected: everyMode(plain([webA1])),
  }),
  row("node CIDRs: a pod of another node is masqueraded", here, {
    from: clientB,
    options: nodeCIDRs,
    expected: everyMode(masqueraded([webA1])),
  }),
  row("none: nobody is masqueraded at the ClusterIP", here, {
    from: outside,
    options: none,
    expected: everyMode(plain([webA1])),
  }),
];
