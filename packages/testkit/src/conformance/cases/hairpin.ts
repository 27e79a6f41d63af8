import { NODE_A, webA1, webB1 } from "../../addresses.ts";
import { rowsOf, workload } from "../case.ts";
import { everyMode, masqueraded, plain } from "../expected.ts";

const row = rowsOf("hairpin");

const alone = workload(21, { endpoints: [webA1] });
const two = workload(22, { endpoints: [webA1, webB1] });
const dual = workload(23, { endpoints: [webA1], families: ["IPv4", "IPv6"] });
const onNode = workload(24, { endpoints: [NODE_A] });
const udp = workload(25, { endpoints: [webA1], protocol: "UDP" });

export const hairpinCases = [
  row("a pod that calls itself is masqueraded", alone, { from: webA1, expected: everyMode(masqueraded([webA1])) }),
  row("only the way back to itself is masqueraded", two, {
    from: webA1,
    expected: everyMode(plain([webA1, webB1], { from: webA1 })),
  }),
  row("IPv6", dual, {
    from: webA1,
    to: dual.clusterIP.IPv6,
    expected: everyMode(masqueraded([webA1], { family: "IPv6" })),
  }),
  row("the node that calls itself", onNode, { from: NODE_A, expected: everyMode(masqueraded([NODE_A])) }),
  row("UDP", udp, { from: webA1, protocol: "UDP", expected: everyMode(masqueraded([webA1])) }),
];
