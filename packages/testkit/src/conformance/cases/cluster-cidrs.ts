import { clientA, NETWORKS, NODE_A, outside, ovnClient, webA1, webB1 } from "../../addresses.ts";
import { rowsOf, workload } from "../case.ts";
import { everyMode, exceptIpvs, masqueraded, plain } from "../expected.ts";
import type { AgentOptions } from "../options.ts";

const row = rowsOf("cluster CIDRs");

const web = workload(141, { endpoints: [webA1, webB1], nodePort: true });
const local = workload(142, { endpoints: [webA1, webB1], nodePort: true, externally: "Local" });
const dual = workload(143, { endpoints: [webA1, webB1], families: ["IPv4", "IPv6"] });

const { calico, ovn } = NETWORKS;

const several: Partial<AgentOptions> = { clusterCIDRs: [calico.IPv4, ovn.IPv4, calico.IPv6, ovn.IPv6] };
const WIDE: Partial<AgentOptions> = { clusterCIDRs: ["10.128.0.0/9", "fd00::/16"] };

export const clusterCIDRCases = [
  row("several: a pod of the first network is not masqueraded", web, {
    from: clientA,
    options: several,
    expected: everyMode(plain([webA1, webB1])),
  }),
  row("several: a pod of the second network is not masqueraded", web, {
    from: ovnClient,
    options: several,
    expected: everyMode(plain([webA1, webB1])),
  }),
  row("several: the node is masqueraded", web, {
    from: NODE_A,
    options: several,
    expected: everyMode(masqueraded([webA1, webB1])),
  }),
  row("several: somebody outside is masqueraded", web, {
    from: outside,
    options: several,
    expected: everyMode(masqueraded([webA1, webB1])),
  }),
  row("several: a pod of the second network takes the short cut", local, {
    to: NODE_A.addresses.IPv4,
    port: local.nodePort,
    from: ovnClient,
    options: several,
    expected: exceptIpvs(plain([webA1, webB1]), plain([webA1])),
  }),
  row("several: somebody outside takes no short cut", local, {
    to: NODE_A.addresses.IPv4,
    port: local.nodePort,
    from: outside,
    options: several,
    expected: everyMode(plain([webA1])),
  }),
  row("several, IPv6: a pod of the second network is not masqueraded", dual, {
    to: dual.clusterIP.IPv6,
    from: ovnClient,
    options: several,
    expected: everyMode(plain([webA1, webB1], { family: "IPv6" })),
  }),
  row("one wide one over both networks", web, {
    from: ovnClient,
    options: WIDE,
    expected: everyMode(plain([webA1, webB1])),
  }),
];
