import { clientA, NODE_A, outside, ovnA, ovnB, ovnClient, webA1, webB1 } from "../../addresses.ts";
import { endpointSlice, service } from "../../objects.ts";
import { conformanceCase, rowsOf, workload } from "../case.ts";
import { everyMode, LEAVE, masqueraded, plain } from "../expected.ts";

const row = rowsOf("foreign");

const ovn = workload(111, { endpoints: [ovnA, ovnB], loadBalancer: "VIP" });
const unready = workload(112, { endpoints: [{ host: ovnA, ready: false }] });
const dual = workload(113, { endpoints: [ovnA], families: ["IPv4", "IPv6"] });
const local = workload(114, { endpoints: [ovnA, ovnB], nodePort: true, externally: "Local" });
const annotatedOurs = workload(115, {
  endpoints: [ovnA, ovnB],
  annotations: { "fairlead.dev/ownership": "ours" },
});
const annotatedForeign = workload(116, {
  endpoints: [webA1, webB1],
  annotations: { "fairlead.dev/ownership": "foreign" },
});
const annotatedWrongly = workload(117, {
  endpoints: [webA1],
  annotations: { "fairlead.dev/ownership": "mine" },
});

/** Our own service with the foreign ClusterIP among its external IPs, at the same port and at another. */
const takers = [80, 443].map((port, i) => [
  service(`taker-${port}`, {
    clusterIPs: [`10.96.3.${10 + i}`],
    externalIPs: [ovn.clusterIP.IPv4],
    ports: [{ port, targetPort: 8080 }],
  }),
  endpointSlice(`taker-${port}-1`, {
    service: `taker-${port}`,
    family: "IPv4",
    ports: [{ port: 8080 }],
    endpoints: [{ address: webA1.addresses.IPv4, nodeName: "node-a" }],
  }),
]);

const CLUSTER_IP_ONLY = { excludedFrontends: "cluster-ip" } as const;
const left = everyMode(LEAVE);

export const foreignCases = [
  row("its ClusterIP from a pod", ovn, { from: clientA, expected: left }),
  row("its ClusterIP from a pod of its own network", ovn, { from: ovnClient, expected: left }),
  row("its ClusterIP from the node", ovn, { from: NODE_A, expected: left }),
  row("its ClusterIP from outside", ovn, { from: outside, expected: left }),
  row("its node port", ovn, { to: NODE_A.addresses.IPv4, port: ovn.nodePort, from: outside, expected: left }),
  row("its load balancer", ovn, { to: ovn.loadBalancerIP.IPv4, from: clientA, expected: left }),
  row("without a ready endpoint it is not refused", unready, { from: clientA, expected: left }),
  row("IPv6", dual, { to: dual.clusterIP.IPv6, from: clientA, expected: left }),
  row("nothing is excluded: it is served like any other", ovn, {
    from: clientA,
    options: { excludeClusterCIDRs: [] },
    expected: everyMode(plain([ovnA, ovnB])),
  }),
  ...[80, 443].map((port) =>
    conformanceCase("foreign", `its ClusterIP as another's external IP, port ${port}`, {
      history: [takers.flat(), [...takers.flat(), ...ovn.objects]],
      to: ovn.clusterIP.IPv4,
      port,
      from: clientA,
      expected: left,
    }),
  ),
  row("excluded-frontends cluster-ip: the ClusterIP is left", ovn, {
    from: clientA,
    options: CLUSTER_IP_ONLY,
    expected: left,
  }),
  row("excluded-frontends cluster-ip: the node port is served", ovn, {
    to: NODE_A.addresses.IPv4,
    port: ovn.nodePort,
    from: outside,
    options: CLUSTER_IP_ONLY,
    expected: everyMode(masqueraded([ovnA, ovnB])),
  }),
  row("excluded-frontends cluster-ip: the load balancer is served", ovn, {
    to: ovn.loadBalancerIP.IPv4,
    from: clientA,
    options: CLUSTER_IP_ONLY,
    expected: everyMode(masqueraded([ovnA, ovnB])),
  }),
  row("excluded-frontends cluster-ip: external Local", local, {
    to: NODE_A.addresses.IPv4,
    port: local.nodePort,
    from: outside,
    options: CLUSTER_IP_ONLY,
    expected: everyMode(plain([ovnA])),
  }),
  row("annotated ours: every endpoint is served", annotatedOurs, {
    from: clientA,
    expected: everyMode(plain([ovnA, ovnB])),
  }),
  row("annotated foreign: left, wherever its endpoints are", annotatedForeign, { from: clientA, expected: left }),
  row("annotated with a word that means nothing: the CIDRs decide", annotatedWrongly, {
    from: clientA,
    expected: everyMode(plain([webA1])),
  }),
  row("annotations switched off: the CIDRs decide against ours", annotatedOurs, {
    from: clientA,
    options: { ownershipAnnotation: false },
    expected: left,
  }),
  row("annotations switched off: the CIDRs decide against foreign", annotatedForeign, {
    from: clientA,
    options: { ownershipAnnotation: false },
    expected: everyMode(plain([webA1, webB1])),
  }),
];
