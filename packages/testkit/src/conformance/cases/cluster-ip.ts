import {
  apiServer,
  clientA,
  clientB,
  NODE_A,
  NODE_B,
  nginxCalico,
  outside,
  ovnClient,
  webA1,
  webA2,
  webB1,
} from "../../addresses.ts";
import { endpointSlice, service } from "../../objects.ts";
import { conformanceCase, rowsOf, workload } from "../case.ts";
import { DROP, everyMode, exceptIptables, LEAVE, masqueraded, noEndpoints, plain, REJECT, skip } from "../expected.ts";

const TOPIC = "cluster IP";
const row = rowsOf(TOPIC);

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
  row("a pod reaches the one endpoint", one, { from: clientA, expected: everyMode(plain([webA1])) }),
  row("a pod is spread evenly over three endpoints", three, {
    from: clientA,
    expected: everyMode(plain([webA1, webA2, webB1])),
  }),
  row("the node's own traffic is masqueraded", three, {
    from: NODE_A,
    expected: everyMode(masqueraded([webA1, webA2, webB1])),
  }),
  row("traffic from outside is masqueraded", three, {
    from: outside,
    expected: everyMode(masqueraded([webA1, webA2, webB1])),
  }),
  row("a pod of another node is a pod", one, { from: clientB, expected: everyMode(plain([webA1])) }),
  row("a pod of the other network is masqueraded", one, { from: ovnClient, expected: everyMode(masqueraded([webA1])) }),
  row("UDP", udp, { from: clientA, protocol: "UDP", expected: everyMode(plain([webA1, webB1])) }),
  row("UDP from the node", udp, { from: NODE_A, protocol: "UDP", expected: everyMode(masqueraded([webA1, webB1])) }),
  row("endpoints in the nodes' own network", hostNetwork, {
    from: clientA,
    expected: everyMode(plain([NODE_A, NODE_B])),
  }),
  row("an endpoint that is not ready gets nothing", unready, { from: clientA, expected: everyMode(plain([webA1])) }),
  row("another proxy's service is left", otherProxy, {
    from: clientA,
    expected: { iptables: LEAVE, ipvs: LEAVE, nftables: skip("drops: an address that no service of this proxy has") },
  }),
  row("no endpoints: a pod is refused", none, { from: clientA, expected: noEndpoints }),
  row("no endpoints: the node is refused", none, { from: NODE_A, expected: noEndpoints }),
  row("no endpoints: somebody outside is refused", none, { from: outside, expected: noEndpoints }),
  row("a port that the service does not have", one, {
    from: clientA,
    port: 443,
    expected: exceptIptables(LEAVE, REJECT),
  }),
  row("a protocol that the service does not have", one, {
    from: clientA,
    protocol: "UDP",
    expected: exceptIptables(LEAVE, REJECT),
  }),
  row("an address of the service range that no service has", one, {
    from: clientA,
    to: "10.96.200.200",
    expected: { iptables: LEAVE, ipvs: LEAVE, nftables: DROP },
  }),
  row("masqueradeAll masquerades pods too", three, {
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
