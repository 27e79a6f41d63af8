/** Packets to cluster IPs: from pods and nodes, in both families and all protocols. */

import {
  apiServer,
  clientA,
  clientB,
  NODE_A,
  NODE_B,
  nginxCalico,
  outside,
  ovnA,
  ovnClient,
  webA1,
  webA2,
  webB1,
} from "../../addresses.ts";
import { endpointSlice, service } from "../../objects.ts";
import { conformanceCase, rowsOf, workload } from "../case.ts";
import { DROP, everyMode, exceptIptables, LEAVE, masqueraded, noEndpoints, plain, REJECT, skip } from "../expected.ts";

const TOPIC = "cluster IP";
const clusterIPRow = rowsOf(TOPIC);

const one = workload(11, { endpoints: [webA1] });
const three = workload(12, { endpoints: [webA1, webA2, webB1] });
const udp = workload(13, { endpoints: [webA1, webB1], protocol: "UDP" });
const hostNetwork = workload(14, { endpoints: [NODE_A, NODE_B] });
const unready = workload(15, { endpoints: [webA1, { host: webB1, ready: false }] });
const none = workload(16, { endpoints: [] });
const otherProxy = workload(17, {
  endpoints: [webA1],
  labels: { "service.kubernetes.io/service-proxy-name": "other" },
});

const twoPorts = [
  service("two-ports", {
    clusterIPs: ["10.96.3.1"],
    ports: [
      { name: "web", port: 80, targetPort: 8080 },
      { name: "admin", port: 443, targetPort: 9090 },
    ],
  }),
  endpointSlice("two-ports-1", {
    service: "two-ports",
    family: "IPv4",
    ports: [
      { name: "web", port: 8080 },
      { name: "admin", port: 9090 },
    ],
    endpoints: [{ address: webA1.addresses.IPv4, nodeName: "node-a" }],
  }),
];

const linkLocal = [
  service("link-local", { clusterIPs: ["169.254.20.10"], ports: [{ port: 53 }] }),
  endpointSlice("link-local-1", {
    service: "link-local",
    family: "IPv4",
    ports: [{ port: 8080 }],
    endpoints: [{ address: webA1.addresses.IPv4, nodeName: "node-a" }],
  }),
];

const founding = [
  service("nginx-calico", { clusterIPs: ["10.96.67.75"], ports: [{ port: 80 }] }),
  endpointSlice("nginx-calico-1", {
    service: "nginx-calico",
    family: "IPv4",
    ports: [{ port: 80 }],
    endpoints: [{ address: nginxCalico.addresses.IPv4, nodeName: "node-b" }],
  }),
];

export const clusterIPCases = [
  clusterIPRow("a pod reaches the one endpoint", one, { from: clientA, expected: everyMode(plain([webA1])) }),
  clusterIPRow("a pod is spread evenly over three endpoints", three, {
    from: clientA,
    expected: everyMode(plain([webA1, webA2, webB1])),
  }),
  clusterIPRow("the node's own traffic is masqueraded", three, {
    from: NODE_A,
    expected: everyMode(masqueraded([webA1, webA2, webB1])),
  }),
  clusterIPRow("traffic from outside is masqueraded", three, {
    from: outside,
    expected: everyMode(masqueraded([webA1, webA2, webB1])),
  }),
  clusterIPRow("a pod of another node is a pod", one, { from: clientB, expected: everyMode(plain([webA1])) }),
  clusterIPRow("a pod of the other network is masqueraded", one, {
    from: ovnClient,
    expected: everyMode(masqueraded([webA1])),
  }),
  clusterIPRow("UDP", udp, { from: clientA, protocol: "UDP", expected: everyMode(plain([webA1, webB1])) }),
  clusterIPRow("UDP from the node", udp, {
    from: NODE_A,
    protocol: "UDP",
    expected: everyMode(masqueraded([webA1, webB1])),
  }),
  clusterIPRow("endpoints in the nodes' own network", hostNetwork, {
    from: clientA,
    expected: everyMode(plain([NODE_A, NODE_B])),
  }),
  clusterIPRow("an endpoint that is not ready gets nothing", unready, {
    from: clientA,
    expected: everyMode(plain([webA1])),
  }),
  clusterIPRow("another proxy's service is left", otherProxy, {
    from: clientA,
    expected: { iptables: LEAVE, ipvs: LEAVE, nftables: skip("drops: an address that no service of this proxy has") },
  }),
  clusterIPRow("no endpoints: a pod is refused", none, { from: clientA, expected: noEndpoints }),
  clusterIPRow("no endpoints: the node is refused", none, { from: NODE_A, expected: noEndpoints }),
  clusterIPRow("no endpoints: a client outside is refused", none, { from: outside, expected: noEndpoints }),
  clusterIPRow("a port that the service does not have", one, {
    from: clientA,
    port: 443,
    expected: exceptIptables(LEAVE, REJECT),
  }),
  clusterIPRow("a protocol that the service does not have", one, {
    from: clientA,
    protocol: "UDP",
    expected: exceptIptables(LEAVE, REJECT),
  }),
  clusterIPRow("an address of the service range that no service has", one, {
    from: clientA,
    to: "10.96.200.200",
    expected: { iptables: LEAVE, ipvs: LEAVE, nftables: DROP },
  }),
  clusterIPRow("masqueradeAll masquerades pods too", three, {
    from: clientA,
    options: { masqueradeAll: true },
    expected: everyMode(masqueraded([webA1, webA2, webB1])),
  }),
  conformanceCase(TOPIC, "each port of a service leads to its own target", {
    history: [twoPorts],
    from: clientA,
    to: "10.96.3.1",
    port: 443,
    expected: everyMode(plain([webA1], { port: 9090 })),
  }),
  conformanceCase(TOPIC, "one in 169.254.0.0/16, as node-local DNS has", {
    history: [linkLocal],
    from: clientA,
    to: "169.254.20.10",
    port: 53,
    expected: everyMode(plain([webA1])),
  }),
  conformanceCase(TOPIC, "the founding case: nginx-calico", {
    history: [founding],
    from: clientA,
    to: "10.96.67.75",
    port: 80,
    expected: everyMode(plain([nginxCalico], { port: 80 })),
  }),
  conformanceCase(TOPIC, "the API server outside of the pod network", {
    history: [[]],
    from: clientA,
    to: "10.96.0.1",
    port: 443,
    expected: everyMode(plain([apiServer], { port: 6443 })),
  }),
];

const CLUSTER_IP = "10.96.0.10";
const PORTS = [
  { name: "dns", port: 53, protocol: "UDP" },
  { name: "dns-tcp", port: 53, protocol: "TCP" },
] as const;

const objects = [
  service("kube-dns", { namespace: "kube-system", clusterIPs: [CLUSTER_IP], ports: PORTS }),
  endpointSlice("kube-dns-1", {
    namespace: "kube-system",
    service: "kube-dns",
    family: "IPv4",
    ports: PORTS,
    endpoints: [webA1, webB1].map(({ addresses, node = "" }) => ({ address: addresses.IPv4, nodeName: node })),
  }),
];

const dns = { history: [objects], to: CLUSTER_IP, port: 53 };

export const dnsCases = [
  conformanceCase("DNS", "over UDP from a pod", {
    ...dns,
    from: clientA,
    protocol: "UDP",
    expected: everyMode(plain([webA1, webB1], { port: 53 })),
  }),
  conformanceCase("DNS", "over TCP from a pod", {
    ...dns,
    from: clientA,
    expected: everyMode(plain([webA1, webB1], { port: 53 })),
  }),
  conformanceCase("DNS", "over UDP from the node", {
    ...dns,
    from: NODE_A,
    protocol: "UDP",
    expected: everyMode(masqueraded([webA1, webB1], { port: 53 })),
  }),
];

const hairpinRow = rowsOf("hairpin");

const oneEndpoint = workload(21, { endpoints: [webA1] });
const hairpinTwo = workload(22, { endpoints: [webA1, webB1] });
const dual = workload(23, { endpoints: [webA1], families: ["IPv4", "IPv6"] });
const onNode = workload(24, { endpoints: [NODE_A] });
const hairpinUdp = workload(25, { endpoints: [webA1], protocol: "UDP" });

export const hairpinCases = [
  hairpinRow("a pod that calls itself is masqueraded", oneEndpoint, {
    from: webA1,
    expected: everyMode(masqueraded([webA1])),
  }),
  hairpinRow("only the way back to itself is masqueraded", hairpinTwo, {
    from: webA1,
    expected: everyMode(plain([webA1, webB1], { from: webA1 })),
  }),
  hairpinRow("IPv6", dual, {
    from: webA1,
    to: dual.clusterIP.IPv6,
    expected: everyMode(masqueraded([webA1], { family: "IPv6" })),
  }),
  hairpinRow("the node that calls itself", onNode, { from: NODE_A, expected: everyMode(masqueraded([NODE_A])) }),
  hairpinRow("UDP", hairpinUdp, { from: webA1, protocol: "UDP", expected: everyMode(masqueraded([webA1])) }),
];

const sctpRow = rowsOf("SCTP");

const PROTOCOL = "SCTP";
const sctpWeb = workload(171, { endpoints: [webA1], nodePort: true, protocol: PROTOCOL });
const two = workload(172, { endpoints: [webA1, webB1], protocol: PROTOCOL });
const sctpNone = workload(173, { endpoints: [], protocol: PROTOCOL });

export const sctpCases = [
  sctpRow("a pod reaches the endpoint", sctpWeb, {
    from: clientA,
    protocol: PROTOCOL,
    expected: everyMode(plain([webA1])),
  }),
  sctpRow("a pod is spread over two", two, {
    from: clientA,
    protocol: PROTOCOL,
    expected: everyMode(plain([webA1, webB1])),
  }),
  sctpRow("from the node", sctpWeb, { from: NODE_A, protocol: PROTOCOL, expected: everyMode(masqueraded([webA1])) }),
  sctpRow("at the node port", sctpWeb, {
    to: NODE_A.addresses.IPv4,
    port: sctpWeb.nodePort,
    from: outside,
    protocol: PROTOCOL,
    expected: everyMode(masqueraded([webA1])),
  }),
  sctpRow("no endpoints: refused", sctpNone, { from: clientA, protocol: PROTOCOL, expected: noEndpoints }),
];

const DUAL_STACK_TOPIC = "dual stack";
const dualStackRow = rowsOf(DUAL_STACK_TOPIC);

const FAMILIES = ["IPv4", "IPv6"] as const;
const FAMILY = "IPv6";

const web = workload(161, { endpoints: [webA1, webB1], families: FAMILIES, port: 443 });
const v4Only = workload(162, { endpoints: [webA1], families: FAMILIES, servedFamilies: ["IPv4"] });
const singleV6 = workload(163, { endpoints: [webA1, webB1], families: ["IPv6"], protocol: "UDP" });
const v6Only = workload(164, { endpoints: [webA1], families: FAMILIES, servedFamilies: ["IPv6"] });

/** Foreign by its IPv4 endpoints, ours by its IPv6 endpoints. */
const split = workload(165, { endpoints: [ovnA], families: FAMILIES, servedFamilies: ["IPv4"] });
const splitObjects = [
  ...split.objects,
  endpointSlice("svc-165-v6", {
    service: "svc-165",
    family: FAMILY,
    ports: [{ port: 8080 }],
    endpoints: [{ address: webA1.addresses.IPv6, nodeName: "node-a" }],
  }),
];

export const dualStackCases = [
  dualStackRow("IPv4 from a pod", web, { from: clientA, expected: everyMode(plain([webA1, webB1])) }),
  dualStackRow("IPv6 from a pod", web, {
    to: web.clusterIP.IPv6,
    from: clientA,
    expected: everyMode(plain([webA1, webB1], { family: FAMILY })),
  }),
  dualStackRow("IPv6 from the node", web, {
    to: web.clusterIP.IPv6,
    from: NODE_A,
    expected: everyMode(masqueraded([webA1, webB1], { family: FAMILY })),
  }),
  dualStackRow("IPv6 from outside", web, {
    to: web.clusterIP.IPv6,
    from: outside,
    expected: everyMode(masqueraded([webA1, webB1], { family: FAMILY })),
  }),
  dualStackRow("IPv6 from a pod of the other network", web, {
    to: web.clusterIP.IPv6,
    from: ovnClient,
    expected: everyMode(masqueraded([webA1, webB1], { family: FAMILY })),
  }),
  dualStackRow("endpoints only in IPv4: IPv6 is refused", v4Only, {
    to: v4Only.clusterIP.IPv6,
    from: clientA,
    expected: noEndpoints,
  }),
  dualStackRow("endpoints only in IPv4: IPv4 serves", v4Only, { from: clientA, expected: everyMode(plain([webA1])) }),
  dualStackRow("endpoints only in IPv6: IPv4 is refused", v6Only, { from: clientA, expected: noEndpoints }),
  dualStackRow("a service of only IPv6, UDP", singleV6, {
    to: singleV6.clusterIP.IPv6,
    protocol: "UDP",
    from: clientA,
    expected: everyMode(plain([webA1, webB1], { family: FAMILY })),
  }),
  conformanceCase(DUAL_STACK_TOPIC, "foreign in IPv4, ours in IPv6: IPv4 is left", {
    history: [splitObjects],
    from: clientA,
    to: split.clusterIP.IPv4,
    port: 80,
    expected: everyMode(LEAVE),
  }),
  conformanceCase(DUAL_STACK_TOPIC, "foreign in IPv4, ours in IPv6: IPv6 serves", {
    history: [splitObjects],
    from: clientA,
    to: split.clusterIP.IPv6,
    port: 80,
    expected: everyMode(plain([webA1], { family: FAMILY })),
  }),
];
