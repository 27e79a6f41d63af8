import { clientA, nodeA, outside, webA1, webB1 } from "../../addresses/hosts.ts";
import { everyMode, masqueraded, noEndpoints, plain } from "../expected.ts";
import { rowsOf } from "../row.ts";
import { workload } from "../workload.ts";

const row = rowsOf("SCTP");

const protocol = "SCTP";
const web = workload(171, { endpoints: [webA1], nodePort: true, protocol });
const two = workload(172, { endpoints: [webA1, webB1], protocol });
const none = workload(173, { endpoints: [], protocol });

export const sctpCases = [
  row("a pod reaches the endpoint", web, { from: clientA, protocol, expected: everyMode(plain([webA1])) }),
  row("a pod is spread over two", two, { from: clientA, protocol, expected: everyMode(plain([webA1, webB1])) }),
  row("from the node", web, { from: nodeA, protocol, expected: everyMode(masqueraded([webA1])) }),
  row("at the node port", web, {
    to: nodeA.addresses.IPv4,
    port: web.nodePort,
    from: outside,
    protocol,
    expected: everyMode(masqueraded([webA1])),
  }),
  row("no endpoints: refused", none, { from: clientA, protocol, expected: noEndpoints }),
];
