import type { LabOptions } from "@fairlead/lab/plain/lab";
import {
  clientA,
  clusterObjects,
  type Host,
  NODE_A,
  NODE_B,
  outside,
  ovnA,
  ovnClient,
  type RawObject,
  type Workload,
  webA1,
  webA2,
  webB1,
  workload,
} from "@fairlead/testkit";

/** Connections that another program makes, and whose they are. */
export interface Call {
  readonly from: Host;
  readonly protocol: "TCP" | "UDP";
  readonly to: string;
  readonly port: number;
  /** Absent: they are no service's. */
  readonly of?: { readonly service: string; readonly owner: "ours" | "foreign" };
}

const BOTH = ["IPv4", "IPv6"] as const;

const web = workload(141, { endpoints: [webA1, webB1], families: BOTH, loadBalancer: "VIP", external: true });
const local = workload(142, { endpoints: [webA1, webA2, webB1], families: BOTH, nodePort: true, externally: "Local" });
const near = workload(143, { endpoints: [webA2, webB1], families: BOTH, internal: "Local" });
const dns = workload(144, { endpoints: [webA1, webB1], families: BOTH, protocol: "UDP", nodePort: true });
const sticky = workload(145, { endpoints: [webA1, webA2, webB1], families: BOTH, affinitySeconds: 600 });
const ovn = workload(146, { endpoints: [ovnA], families: BOTH, loadBalancer: "VIP" });

export const flowObjects: readonly RawObject[] = [
  ...clusterObjects,
  ...[web, local, near, dns, sticky, ovn].flatMap(({ objects }) => objects),
];

/** Where the lab listens for these calls. */
export const flowPorts: LabOptions = {
  podPorts: { tcp: [80, 8080], udp: [8080] },
  landingPorts: { tcp: [80, 8080, web.nodePort, ovn.nodePort], udp: [80, 8080, dns.nodePort] },
};

const SERVICES = { web, local, near, dns, sticky, ovn };

function served(name: keyof typeof SERVICES, at: (workload: Workload) => Pick<Call, "from" | "to" | "port">): Call {
  const { objects } = SERVICES[name];
  const service = `default/${objects[0]?.metadata.name}`;
  const owner = name === "ovn" ? "foreign" : "ours";
  return { protocol: name === "dns" ? "UDP" : "TCP", ...at(SERVICES[name]), of: { service, owner } };
}

/** Every kind of connection that a node sees, of services and not. */
export const calls: readonly Call[] = BOTH.flatMap((family) => {
  const node = NODE_A.addresses[family];
  const clusterIP =
    (from: Host) =>
    ({ clusterIP: to, port }: Workload) => ({ from, to: to[family], port });
  const nodePort =
    (from: Host) =>
    ({ nodePort: port }: Workload) => ({ from, to: node, port });
  return [
    ...[clientA, ovnClient, NODE_A, outside].map((from) => served("web", clusterIP(from))),
    ...[clientA, NODE_A, outside].map((from) => served("web", nodePort(from))),
    ...[clientA, outside].flatMap((from) => [
      served("web", ({ externalIP, port }) => ({ from, to: externalIP[family], port })),
      served("web", ({ loadBalancerIP, port }) => ({ from, to: loadBalancerIP[family], port })),
    ]),
    // Hairpin: some of these reach the caller itself.
    served("web", clusterIP(webA1)),
    ...[clientA, outside].map((from) => served("local", nodePort(from))),
    served("near", clusterIP(clientA)),
    ...[clientA, webA1, NODE_A].map((from) => served("dns", clusterIP(from))),
    served("dns", nodePort(outside)),
    ...[clientA, webA2].map((from) => served("sticky", clusterIP(from))),
    ...[clientA, ovnClient, NODE_A].map((from) => served("ovn", clusterIP(from))),
    served("ovn", ({ loadBalancerIP, port }) => ({ from: clientA, to: loadBalancerIP[family], port })),
    // Nobody's: pods and nodes by their own addresses, node ports' numbers at hosts that serve none.
    { from: clientA, protocol: "TCP", to: webB1.addresses[family], port: 8080 },
    { from: NODE_A, protocol: "TCP", to: webA1.addresses[family], port: 8080 },
    { from: clientA, protocol: "UDP", to: webA1.addresses[family], port: 8080 },
    { from: clientA, protocol: "TCP", to: NODE_B.addresses[family], port: web.nodePort },
    { from: clientA, protocol: "TCP", to: node, port: 8080 },
    { from: outside, protocol: "TCP", to: node, port: ovn.nodePort },
  ] satisfies Call[];
});
