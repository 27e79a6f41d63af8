import { clientA, NETWORKS, NODE_A, NODE_B, outside, SECOND_NODE_ADDRESS, webA1, webB1 } from "../../addresses.ts";
import { rowsOf, workload } from "../case.ts";
import { everyMode, LEAVE, masqueraded, noEndpoints, plain } from "../expected.ts";

const row = rowsOf("chosen node ports");

/** The networks of the node's second address. */
const SECOND = "10.202.0.0/24, fd00:202::/64";
const chosen = (value: string) => ({ nodePort: true, annotations: { "fairlead.dev/node-port-addresses": value } });
const endpoints = [webA1, webB1];

const two = workload(36, { endpoints, families: ["IPv4", "IPv6"], ...chosen(SECOND) });
const udp = workload(37, { endpoints, protocol: "UDP", ...chosen("10.202.0.0/24") });
const local = workload(38, { endpoints, externally: "Local", ...chosen("10.202.0.0/24") });
const none = workload(39, { endpoints: [], ...chosen("10.202.0.0/24") });
const wrong = workload(40, { endpoints, ...chosen("10.202.0.0/24, the second") });
const elsewhere = workload(46, { endpoints, ...chosen("192.168.0.0/16") });

const both = masqueraded([webA1, webB1]);
/** Every mode serves node ports on both addresses of the node. */
const options = {
  nodePortAddresses: [NETWORKS.nodes.IPv4, NETWORKS.nodes.IPv6, "10.202.0.0/24", "fd00:202::/64"],
};
const first = { to: NODE_A.addresses.IPv4, options } as const;
const second = { to: SECOND_NODE_ADDRESS.IPv4, options } as const;

export const chosenNodePortCases = [
  row("from outside on the chosen address", two, {
    ...second,
    port: two.nodePort,
    from: outside,
    expected: everyMode(both),
  }),
  row("from a pod on the chosen address", two, {
    ...second,
    port: two.nodePort,
    from: clientA,
    expected: everyMode(both),
  }),
  row("from another node on the chosen address", two, {
    ...second,
    port: two.nodePort,
    from: NODE_B,
    expected: everyMode(both),
  }),
  row("from outside on another address", two, {
    ...first,
    port: two.nodePort,
    from: outside,
    expected: everyMode(LEAVE),
  }),
  row("from the node itself on another address", two, {
    ...first,
    port: two.nodePort,
    from: NODE_A,
    expected: everyMode(LEAVE),
  }),
  row("never on localhost", two, {
    options,
    to: "127.0.0.1",
    source: "127.0.0.1",
    port: two.nodePort,
    from: NODE_A,
    expected: everyMode(LEAVE),
  }),
  row("IPv6 on the chosen address", two, {
    options,
    to: SECOND_NODE_ADDRESS.IPv6,
    port: two.nodePort,
    from: outside,
    expected: everyMode(masqueraded([webA1, webB1], { family: "IPv6" })),
  }),
  row("IPv6 on another address", two, {
    options,
    to: NODE_A.addresses.IPv6,
    port: two.nodePort,
    from: outside,
    expected: everyMode(LEAVE),
  }),
  row("the ClusterIP is served as ever", two, { options, from: clientA, expected: everyMode(plain([webA1, webB1])) }),
  row("UDP on the chosen address", udp, {
    ...second,
    port: udp.nodePort,
    protocol: "UDP",
    from: outside,
    expected: everyMode(both),
  }),
  row("UDP on another address", udp, {
    ...first,
    port: udp.nodePort,
    protocol: "UDP",
    from: outside,
    expected: everyMode(LEAVE),
  }),
  row("policy Local keeps the client's address", local, {
    ...second,
    port: local.nodePort,
    from: outside,
    expected: everyMode(plain([webA1])),
  }),
  row("no endpoints: refused on the chosen address", none, {
    ...second,
    port: none.nodePort,
    from: outside,
    expected: noEndpoints,
  }),
  row("no endpoints: left alone on another address", none, {
    ...first,
    port: none.nodePort,
    from: outside,
    expected: everyMode(LEAVE),
  }),
  row("a value that cannot be read opens nothing", wrong, {
    ...second,
    port: wrong.nodePort,
    from: outside,
    expected: everyMode(LEAVE),
  }),
  row("a network that the node is not in opens nothing", elsewhere, {
    ...first,
    port: elsewhere.nodePort,
    from: outside,
    expected: everyMode(LEAVE),
  }),
  row("within nodePortAddresses only", two, {
    to: SECOND_NODE_ADDRESS.IPv4,
    options: { nodePortAddresses: [NETWORKS.nodes.IPv4] },
    port: two.nodePort,
    from: outside,
    expected: everyMode(LEAVE),
  }),
  row("where node ports are as the mode has them by default", two, {
    to: SECOND_NODE_ADDRESS.IPv4,
    port: two.nodePort,
    from: outside,
    expected: { iptables: both, ipvs: both, nftables: LEAVE },
  }),
];
