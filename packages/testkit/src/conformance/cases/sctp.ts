import { clientA, NODE_A, outside, webA1, webB1 } from "../../addresses.ts";
import { rowsOf, workload } from "../case.ts";
import { everyMode, masqueraded, noEndpoints, plain } from "../expected.ts";

const row = rowsOf("SCTP");

const PROTOCOL = "SCTP";
const web = workload(171, { endpoints: [webA1], nodePort: true, protocol: PROTOCOL });
const two = workload(172, { endpoints: [webA1, webB1], protocol: PROTOCOL });
const none = workload(173, { endpoints: [], protocol: PROTOCOL });

export const sctpCases = [
  row("a pod reaches the endpoint", web, { from: clientA, protocol: PROTOCOL, expected: everyMode(plain([webA1])) }),
  row("a pod is spread over two", two, {
    from: clientA,
    protocol: PROTOCOL,
    expected: everyMode(plain([webA1, webB1])),
  }),
  row("from the node", web, { from: NODE_A, protocol: PROTOCOL, expected: everyMode(masqueraded([webA1])) }),
  row("at the node port", web, {
    to: NODE_A.addresses.IPv4,
    port: web.nodePort,
    from: outside,
    protocol: PROTOCOL,
    expected: everyMode(masqueraded([webA1])),
  }),
  row("no endpoints: refused", none, { from: clientA, protocol: PROTOCOL, expected: noEndpoints }),
];
