/** Packets to node ports and external IPs. */

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
import {
  DROP,
  EMPTY,
  everyMode,
  exceptIptables,
  exceptIpvs,
  LEAVE,
  masqueraded,
  noEndpoints,
  plain,
  REJECT,
} from "../expected.ts";

const nodePortRow = rowsOf("node port");

const LOCALHOST = { to: "127.0.0.1", source: "127.0.0.1", from: NODE_A } as const;

const two = workload(31, { endpoints: [webA1, webB1], nodePort: true });
const udp = workload(32, { endpoints: [webA1, webB1], nodePort: true, protocol: "UDP" });
const none = workload(33, { endpoints: [], nodePort: true });
const here = workload(34, { endpoints: [webA1, webA2], nodePort: true });
const dual = workload(35, { endpoints: [webA1, webB1], nodePort: true, families: ["IPv4", "IPv6"] });

const toNode = { to: NODE_A.addresses.IPv4, port: two.nodePort } as const;
const both = masqueraded([webA1, webB1]);

export const nodePortCases = [
  nodePortRow("from outside", two, { ...toNode, from: outside, expected: everyMode(both) }),
  nodePortRow("from a pod", two, { ...toNode, from: clientA, expected: everyMode(both) }),
  nodePortRow("from a pod of another node", two, { ...toNode, from: clientB, expected: everyMode(both) }),
  nodePortRow("from a pod of the other network", two, { ...toNode, from: ovnClient, expected: everyMode(both) }),
  nodePortRow("from the node itself", two, { ...toNode, from: NODE_A, expected: everyMode(both) }),
  nodePortRow("from another node", two, { ...toNode, from: NODE_B, expected: everyMode(both) }),
  nodePortRow("on the node's second address", two, {
    ...toNode,
    to: SECOND_NODE_ADDRESS.IPv4,
    from: outside,
    expected: { iptables: both, ipvs: both, nftables: LEAVE },
  }),
  nodePortRow("the other node's is left to that node", two, {
    ...toNode,
    to: NODE_B.addresses.IPv4,
    from: clientA,
    expected: everyMode(LEAVE),
  }),
  nodePortRow("UDP from outside", udp, {
    to: NODE_A.addresses.IPv4,
    port: udp.nodePort,
    protocol: "UDP",
    from: outside,
    expected: everyMode(both),
  }),
  nodePortRow("a port that no service has", two, {
    ...toNode,
    port: 30_999,
    from: outside,
    expected: everyMode(LEAVE),
  }),
  nodePortRow("no endpoints: a client outside is refused", none, {
    to: NODE_A.addresses.IPv4,
    port: none.nodePort,
    from: outside,
    expected: noEndpoints,
  }),
  nodePortRow("no endpoints: the node is refused", none, {
    to: NODE_A.addresses.IPv4,
    port: none.nodePort,
    from: NODE_A,
    expected: noEndpoints,
  }),
  nodePortRow("on localhost", two, { ...LOCALHOST, port: two.nodePort, expected: exceptIptables(both, LEAVE) }),
  nodePortRow("on localhost, switched off", two, {
    ...LOCALHOST,
    port: two.nodePort,
    options: { localhostNodePorts: false },
    expected: everyMode(LEAVE),
  }),
  nodePortRow("only on the selected address", two, {
    ...toNode,
    from: outside,
    options: { nodePortAddresses: [NETWORKS.nodes.IPv4] },
    expected: everyMode(both),
  }),
  nodePortRow("not on an address that is not selected", two, {
    ...toNode,
    to: SECOND_NODE_ADDRESS.IPv4,
    from: outside,
    options: { nodePortAddresses: [NETWORKS.nodes.IPv4] },
    expected: everyMode(LEAVE),
  }),
  nodePortRow("not on localhost where that is not selected", two, {
    ...LOCALHOST,
    port: two.nodePort,
    options: { nodePortAddresses: [NETWORKS.nodes.IPv4] },
    expected: everyMode(LEAVE),
  }),
  nodePortRow("masqueradeAll changes nothing", here, {
    to: NODE_A.addresses.IPv4,
    port: here.nodePort,
    from: outside,
    options: { masqueradeAll: true },
    expected: everyMode(masqueraded([webA1, webA2])),
  }),
  nodePortRow("IPv6 from outside", dual, {
    to: NODE_A.addresses.IPv6,
    port: dual.nodePort,
    from: outside,
    expected: everyMode(masqueraded([webA1, webB1], { family: "IPv6" })),
  }),
  nodePortRow("IPv6 on the second address", dual, {
    to: SECOND_NODE_ADDRESS.IPv6,
    port: dual.nodePort,
    from: outside,
    expected: {
      iptables: masqueraded([webA1, webB1], { family: "IPv6" }),
      ipvs: masqueraded([webA1, webB1], { family: "IPv6" }),
      nftables: LEAVE,
    },
  }),
  nodePortRow("IPv6 never on localhost", dual, {
    to: "::1",
    source: "::1",
    port: dual.nodePort,
    from: NODE_A,
    expected: everyMode(LEAVE),
  }),
];

const chosenRow = rowsOf("chosen node ports");

/** The networks of the node's second address. */
const SECOND = "10.202.0.0/24, fd00:202::/64";
const chosen = (value: string) => ({ nodePort: true, annotations: { "fairlead.dev/node-port-addresses": value } });
const endpoints = [webA1, webB1];

const chosenTwo = workload(36, { endpoints, families: ["IPv4", "IPv6"], ...chosen(SECOND) });
const chosenUdp = workload(37, { endpoints, protocol: "UDP", ...chosen("10.202.0.0/24") });
const chosenLocal = workload(38, { endpoints, externally: "Local", ...chosen("10.202.0.0/24") });
const chosenNone = workload(39, { endpoints: [], ...chosen("10.202.0.0/24") });
const wrong = workload(40, { endpoints, ...chosen("10.202.0.0/24, the second") });
const chosenElsewhere = workload(46, { endpoints, ...chosen("192.168.0.0/16") });

const chosenBoth = masqueraded([webA1, webB1]);
/** Every mode serves node ports on both addresses of the node. */
const options = {
  nodePortAddresses: [NETWORKS.nodes.IPv4, NETWORKS.nodes.IPv6, "10.202.0.0/24", "fd00:202::/64"],
};
const first = { to: NODE_A.addresses.IPv4, options } as const;
const second = { to: SECOND_NODE_ADDRESS.IPv4, options } as const;

export const chosenNodePortCases = [
  chosenRow("from outside on the chosen address", chosenTwo, {
    ...second,
    port: chosenTwo.nodePort,
    from: outside,
    expected: everyMode(chosenBoth),
  }),
  chosenRow("from a pod on the chosen address", chosenTwo, {
    ...second,
    port: chosenTwo.nodePort,
    from: clientA,
    expected: everyMode(chosenBoth),
  }),
  chosenRow("from another node on the chosen address", chosenTwo, {
    ...second,
    port: chosenTwo.nodePort,
    from: NODE_B,
    expected: everyMode(chosenBoth),
  }),
  chosenRow("from outside on another address", chosenTwo, {
    ...first,
    port: chosenTwo.nodePort,
    from: outside,
    expected: everyMode(LEAVE),
  }),
  chosenRow("from the node itself on another address", chosenTwo, {
    ...first,
    port: chosenTwo.nodePort,
    from: NODE_A,
    expected: everyMode(LEAVE),
  }),
  chosenRow("never on localhost", chosenTwo, {
    options,
    to: "127.0.0.1",
    source: "127.0.0.1",
    port: chosenTwo.nodePort,
    from: NODE_A,
    expected: everyMode(LEAVE),
  }),
  chosenRow("IPv6 on the chosen address", chosenTwo, {
    options,
    to: SECOND_NODE_ADDRESS.IPv6,
    port: chosenTwo.nodePort,
    from: outside,
    expected: everyMode(masqueraded([webA1, webB1], { family: "IPv6" })),
  }),
  chosenRow("IPv6 on another address", chosenTwo, {
    options,
    to: NODE_A.addresses.IPv6,
    port: chosenTwo.nodePort,
    from: outside,
    expected: everyMode(LEAVE),
  }),
  chosenRow("the ClusterIP is served as ever", chosenTwo, {
    options,
    from: clientA,
    expected: everyMode(plain([webA1, webB1])),
  }),
  chosenRow("UDP on the chosen address", chosenUdp, {
    ...second,
    port: chosenUdp.nodePort,
    protocol: "UDP",
    from: outside,
    expected: everyMode(chosenBoth),
  }),
  chosenRow("UDP on another address", chosenUdp, {
    ...first,
    port: chosenUdp.nodePort,
    protocol: "UDP",
    from: outside,
    expected: everyMode(LEAVE),
  }),
  chosenRow("policy Local keeps the client's address", chosenLocal, {
    ...second,
    port: chosenLocal.nodePort,
    from: outside,
    expected: everyMode(plain([webA1])),
  }),
  chosenRow("no endpoints: refused on the chosen address", chosenNone, {
    ...second,
    port: chosenNone.nodePort,
    from: outside,
    expected: noEndpoints,
  }),
  chosenRow("no endpoints: ignored on another address", chosenNone, {
    ...first,
    port: chosenNone.nodePort,
    from: outside,
    expected: everyMode(LEAVE),
  }),
  chosenRow("a value that cannot be read opens nothing", wrong, {
    ...second,
    port: wrong.nodePort,
    from: outside,
    expected: everyMode(LEAVE),
  }),
  chosenRow("a network that the node is not in opens nothing", chosenElsewhere, {
    ...first,
    port: chosenElsewhere.nodePort,
    from: outside,
    expected: everyMode(LEAVE),
  }),
  chosenRow("within nodePortAddresses only", chosenTwo, {
    to: SECOND_NODE_ADDRESS.IPv4,
    options: { nodePortAddresses: [NETWORKS.nodes.IPv4] },
    port: chosenTwo.nodePort,
    from: outside,
    expected: everyMode(LEAVE),
  }),
  chosenRow("where node ports are as the mode has them by default", chosenTwo, {
    to: SECOND_NODE_ADDRESS.IPv4,
    port: chosenTwo.nodePort,
    from: outside,
    expected: { iptables: chosenBoth, ipvs: chosenBoth, nftables: LEAVE },
  }),
];

const externalRow = rowsOf("external IP");

const externalTwo = workload(41, { endpoints: [webA1, webB1], external: true });
const externalNone = workload(42, { endpoints: [], external: true });
const local = workload(43, { endpoints: [webA1, webB1], external: true, externally: "Local" });
const elsewhere = workload(44, { endpoints: [webB1], external: true, externally: "Local" });
const externalDual = workload(45, { endpoints: [webA1], external: true, families: ["IPv4", "IPv6"] });

export const externalCases = [
  externalRow("from outside", externalTwo, {
    to: externalTwo.externalIP.IPv4,
    from: outside,
    expected: everyMode(masqueraded([webA1, webB1])),
  }),
  externalRow("from a pod", externalTwo, {
    to: externalTwo.externalIP.IPv4,
    from: clientA,
    expected: everyMode(masqueraded([webA1, webB1])),
  }),
  externalRow("from the node", externalTwo, {
    to: externalTwo.externalIP.IPv4,
    from: NODE_A,
    expected: everyMode(masqueraded([webA1, webB1])),
  }),
  externalRow("a port that the service does not have", externalTwo, {
    to: externalTwo.externalIP.IPv4,
    port: 443,
    from: outside,
    expected: exceptIpvs(LEAVE, REJECT),
  }),
  externalRow("no endpoints: a client outside is refused", externalNone, {
    to: externalNone.externalIP.IPv4,
    from: outside,
    expected: noEndpoints,
  }),
  externalRow("no endpoints: the node's own packet", externalNone, {
    to: externalNone.externalIP.IPv4,
    from: NODE_A,
    // Upstream's OUTPUT chain does not ask KUBE-EXTERNAL-SERVICES.
    expected: { iptables: LEAVE, ipvs: EMPTY, nftables: REJECT },
  }),
  externalRow("Local: from outside to the endpoint here, its source kept", local, {
    to: local.externalIP.IPv4,
    from: outside,
    expected: everyMode(plain([webA1])),
  }),
  externalRow("Local: a pod takes the short cut", local, {
    to: local.externalIP.IPv4,
    from: clientA,
    expected: exceptIpvs(plain([webA1, webB1]), plain([webA1])),
  }),
  externalRow("Local: the node takes the short cut, masqueraded", local, {
    to: local.externalIP.IPv4,
    from: NODE_A,
    expected: exceptIpvs(masqueraded([webA1, webB1]), plain([webA1])),
  }),
  externalRow("Local without an endpoint here: dropped", elsewhere, {
    to: elsewhere.externalIP.IPv4,
    from: outside,
    expected: exceptIpvs(DROP, plain([webB1])),
  }),
  externalRow("Local without an endpoint here: a pod takes the short cut", elsewhere, {
    to: elsewhere.externalIP.IPv4,
    from: clientA,
    expected: everyMode(plain([webB1])),
  }),
  externalRow("IPv6 from outside", externalDual, {
    to: externalDual.externalIP.IPv6,
    from: outside,
    expected: everyMode(masqueraded([webA1], { family: "IPv6" })),
  }),
];
