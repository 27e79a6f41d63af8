import { clientA, NODE_A, outside, webA1, webB1 } from "../../addresses.ts";
import { rowsOf, workload } from "../case.ts";
import { DROP, EMPTY, everyMode, exceptIpvs, LEAVE, masqueraded, noEndpoints, plain, REJECT } from "../expected.ts";

const row = rowsOf("external IP");

const two = workload(41, { endpoints: [webA1, webB1], external: true });
const none = workload(42, { endpoints: [], external: true });
const local = workload(43, { endpoints: [webA1, webB1], external: true, externally: "Local" });
const elsewhere = workload(44, { endpoints: [webB1], external: true, externally: "Local" });
const dual = workload(45, { endpoints: [webA1], external: true, families: ["IPv4", "IPv6"] });

export const externalCases = [
  row("from outside", two, {
    to: two.externalIP.IPv4,
    from: outside,
    expected: everyMode(masqueraded([webA1, webB1])),
  }),
  row("from a pod", two, { to: two.externalIP.IPv4, from: clientA, expected: everyMode(masqueraded([webA1, webB1])) }),
  row("from the node", two, {
    to: two.externalIP.IPv4,
    from: NODE_A,
    expected: everyMode(masqueraded([webA1, webB1])),
  }),
  row("a port that the service does not have", two, {
    to: two.externalIP.IPv4,
    port: 443,
    from: outside,
    expected: exceptIpvs(LEAVE, REJECT),
  }),
  row("no endpoints: somebody outside is refused", none, {
    to: none.externalIP.IPv4,
    from: outside,
    expected: noEndpoints,
  }),
  row("no endpoints: the node's own packet", none, {
    to: none.externalIP.IPv4,
    from: NODE_A,
    // Upstream's OUTPUT chain does not ask KUBE-EXTERNAL-SERVICES.
    expected: { iptables: LEAVE, ipvs: EMPTY, nftables: REJECT },
  }),
  row("Local: from outside to the endpoint here, its source kept", local, {
    to: local.externalIP.IPv4,
    from: outside,
    expected: everyMode(plain([webA1])),
  }),
  row("Local: a pod takes the short cut", local, {
    to: local.externalIP.IPv4,
    from: clientA,
    expected: exceptIpvs(plain([webA1, webB1]), plain([webA1])),
  }),
  row("Local: the node takes the short cut, masqueraded", local, {
    to: local.externalIP.IPv4,
    from: NODE_A,
    expected: exceptIpvs(masqueraded([webA1, webB1]), plain([webA1])),
  }),
  row("Local without an endpoint here: dropped", elsewhere, {
    to: elsewhere.externalIP.IPv4,
    from: outside,
    expected: exceptIpvs(DROP, plain([webB1])),
  }),
  row("Local without an endpoint here: a pod takes the short cut", elsewhere, {
    to: elsewhere.externalIP.IPv4,
    from: clientA,
    expected: everyMode(plain([webB1])),
  }),
  row("IPv6 from outside", dual, {
    to: dual.externalIP.IPv6,
    from: outside,
    expected: everyMode(masqueraded([webA1], { family: "IPv6" })),
  }),
];
