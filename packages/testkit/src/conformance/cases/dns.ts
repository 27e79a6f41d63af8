import { clientA, NODE_A, webA1, webB1 } from "../../addresses.ts";
import { endpointSlice, service } from "../../objects.ts";
import { conformanceCase } from "../case.ts";
import { everyMode, masqueraded, plain } from "../expected.ts";

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
