import {
  clientA,
  clientB,
  NETWORKS,
  NODE_A,
  NODE_B,
  outside,
  ovnClient,
  SECOND_NODE_ADDRESS,
  webA1,
  webA2,
  webB1,
} from "../../addresses.ts";
import { rowsOf, workload } from "../case.ts";
import { everyMode, exceptIptables, LEAVE, masqueraded, noEndpoints } from "../expected.ts";

const row = rowsOf("node port");

const LOCALHOST = { to: "127.0.0.1", source: "127.0.0.1", from: NODE_A } as const;

const two = workload(31, { endpoints: [webA1, webB1], nodePort: true });
const udp = workload(32, { endpoints: [webA1, webB1], nodePort: true, protocol: "UDP" });
const none = workload(33, { endpoints: [], nodePort: true });
const here = workload(34, { endpoints: [webA1, webA2], nodePort: true });
const dual = workload(35, { endpoints: [webA1, webB1], nodePort: true, families: ["IPv4", "IPv6"] });

const toNode = { to: NODE_A.addresses.IPv4, port: two.nodePort } as const;
const both = masqueraded([webA1, webB1]);

export const nodePortCases = [
  row("from outside", two, { ...toNode, from: outside, expected: everyMode(both) }),
  row("from a pod", two, { ...toNode, from: clientA, expected: everyMode(both) }),
  row("from a pod of another node", two, { ...toNode, from: clientB, expected: everyMode(both) }),
  row("from a pod of the other network", two, { ...toNode, from: ovnClient, expected: everyMode(both) }),
  row("from the node itself", two, { ...toNode, from: NODE_A, expected: everyMode(both) }),
  row("from another node", two, { ...toNode, from: NODE_B, expected: everyMode(both) }),
  row("on the node's second address", two, {
    ...toNode,
    to: SECOND_NODE_ADDRESS.IPv4,
    from: outside,
    expected: { iptables: both, ipvs: both, nftables: LEAVE },
  }),
  row("the other node's is left to that node", two, {
    ...toNode,
    to: NODE_B.addresses.IPv4,
    from: clientA,
    expected: everyMode(LEAVE),
  }),
  row("UDP from outside", udp, {
    to: NODE_A.addresses.IPv4,
    port: udp.nodePort,
    protocol: "UDP",
    from: outside,
    expected: everyMode(both),
  }),
  row("a port that no service has", two, { ...toNode, port: 30_999, from: outside, expected: everyMode(LEAVE) }),
  row("no endpoints: somebody outside is refused", none, {
    to: NODE_A.addresses.IPv4,
    port: none.nodePort,
    from: outside,
    expected: noEndpoints,
  }),
  row("no endpoints: the node is refused", none, {
    to: NODE_A.addresses.IPv4,
    port: none.nodePort,
    from: NODE_A,
    expected: noEndpoints,
  }),
  row("on localhost", two, { ...LOCALHOST, port: two.nodePort, expected: exceptIptables(both, LEAVE) }),
  row("on localhost, switched off", two, {
    ...LOCALHOST,
    port: two.nodePort,
    options: { localhostNodePorts: false },
    expected: everyMode(LEAVE),
  }),
  row("on the selected address alone", two, {
    ...toNode,
    from: outside,
    options: { nodePortAddresses: [NETWORKS.nodes.IPv4] },
    expected: everyMode(both),
  }),
  row("not on an address that is not selected", two, {
    ...toNode,
    to: SECOND_NODE_ADDRESS.IPv4,
    from: outside,
    options: { nodePortAddresses: [NETWORKS.nodes.IPv4] },
    expected: everyMode(LEAVE),
  }),
  row("not on localhost where that is not selected", two, {
    ...LOCALHOST,
    port: two.nodePort,
    options: { nodePortAddresses: [NETWORKS.nodes.IPv4] },
    expected: everyMode(LEAVE),
  }),
  row("masqueradeAll changes nothing", here, {
    to: NODE_A.addresses.IPv4,
    port: here.nodePort,
    from: outside,
    options: { masqueradeAll: true },
    expected: everyMode(masqueraded([webA1, webA2])),
  }),
  row("IPv6 from outside", dual, {
    to: NODE_A.addresses.IPv6,
    port: dual.nodePort,
    from: outside,
    expected: everyMode(masqueraded([webA1, webB1], { family: "IPv6" })),
  }),
  row("IPv6 on the second address", dual, {
    to: SECOND_NODE_ADDRESS.IPv6,
    port: dual.nodePort,
    from: outside,
    expected: {
      iptables: masqueraded([webA1, webB1], { family: "IPv6" }),
      ipvs: masqueraded([webA1, webB1], { family: "IPv6" }),
      nftables: LEAVE,
    },
  }),
  row("IPv6 never on localhost", dual, {
    to: "::1",
    source: "::1",
    port: dual.nodePort,
    from: NODE_A,
    expected: everyMode(LEAVE),
  }),
];
