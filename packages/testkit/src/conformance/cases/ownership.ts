/** Services of other proxies: endpoints in excluded CIDRs, some or all of them, now or before. */

import { clientA, NODE_A, outside, ovnA, ovnB, ovnClient, webA1, webB1, webB2 } from "../../addresses.ts";
import { endpointSlice, service } from "../../objects.ts";
import { conformanceCase, rowsOf, workload } from "../case.ts";
import { DROP, everyMode, exceptIpvs, LEAVE, masqueraded, noEndpoints, plain } from "../expected.ts";

const foreignRow = rowsOf("foreign");

const foreignOvn = workload(111, { endpoints: [ovnA, ovnB], loadBalancer: "VIP" });
const unready = workload(112, { endpoints: [{ host: ovnA, ready: false }] });
const foreignDual = workload(113, { endpoints: [ovnA], families: ["IPv4", "IPv6"] });
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
    externalIPs: [foreignOvn.clusterIP.IPv4],
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
  foreignRow("its ClusterIP from a pod", foreignOvn, { from: clientA, expected: left }),
  foreignRow("its ClusterIP from a pod of its own network", foreignOvn, { from: ovnClient, expected: left }),
  foreignRow("its ClusterIP from the node", foreignOvn, { from: NODE_A, expected: left }),
  foreignRow("its ClusterIP from outside", foreignOvn, { from: outside, expected: left }),
  foreignRow("its node port", foreignOvn, {
    to: NODE_A.addresses.IPv4,
    port: foreignOvn.nodePort,
    from: outside,
    expected: left,
  }),
  foreignRow("its load balancer", foreignOvn, { to: foreignOvn.loadBalancerIP.IPv4, from: clientA, expected: left }),
  foreignRow("without a ready endpoint it is not refused", unready, { from: clientA, expected: left }),
  foreignRow("IPv6", foreignDual, { to: foreignDual.clusterIP.IPv6, from: clientA, expected: left }),
  foreignRow("nothing is excluded: it is served like any other", foreignOvn, {
    from: clientA,
    options: { excludeClusterCIDRs: [] },
    expected: everyMode(plain([ovnA, ovnB])),
  }),
  ...[80, 443].map((port) =>
    conformanceCase("foreign", `its ClusterIP as another's external IP, port ${port}`, {
      history: [takers.flat(), [...takers.flat(), ...foreignOvn.objects]],
      to: foreignOvn.clusterIP.IPv4,
      port,
      from: clientA,
      expected: left,
    }),
  ),
  foreignRow("excluded-frontends cluster-ip: the ClusterIP is left", foreignOvn, {
    from: clientA,
    options: CLUSTER_IP_ONLY,
    expected: left,
  }),
  foreignRow("excluded-frontends cluster-ip: the node port is served", foreignOvn, {
    to: NODE_A.addresses.IPv4,
    port: foreignOvn.nodePort,
    from: outside,
    options: CLUSTER_IP_ONLY,
    expected: everyMode(masqueraded([ovnA, ovnB])),
  }),
  foreignRow("excluded-frontends cluster-ip: the load balancer is served", foreignOvn, {
    to: foreignOvn.loadBalancerIP.IPv4,
    from: clientA,
    options: CLUSTER_IP_ONLY,
    expected: everyMode(masqueraded([ovnA, ovnB])),
  }),
  foreignRow("excluded-frontends cluster-ip: external Local", local, {
    to: NODE_A.addresses.IPv4,
    port: local.nodePort,
    from: outside,
    options: CLUSTER_IP_ONLY,
    expected: everyMode(plain([ovnA])),
  }),
  foreignRow("annotated ours: every endpoint is served", annotatedOurs, {
    from: clientA,
    expected: everyMode(plain([ovnA, ovnB])),
  }),
  foreignRow("annotated foreign: left, wherever its endpoints are", annotatedForeign, {
    from: clientA,
    expected: left,
  }),
  foreignRow("annotated with a word that means nothing: the CIDRs decide", annotatedWrongly, {
    from: clientA,
    expected: everyMode(plain([webA1])),
  }),
  foreignRow("annotations switched off: the CIDRs decide against ours", annotatedOurs, {
    from: clientA,
    options: { ownershipAnnotation: false },
    expected: left,
  }),
  foreignRow("annotations switched off: the CIDRs decide against foreign", annotatedForeign, {
    from: clientA,
    options: { ownershipAnnotation: false },
    expected: everyMode(plain([webA1, webB1])),
  }),
];

const mixedRow = rowsOf("mixed");

const mixedService = workload(121, { endpoints: [webA1, webB1, ovnA, ovnB], nodePort: true });
const ownUnready = workload(122, { endpoints: [{ host: webA1, ready: false }, ovnA] });
const localExcluded = workload(123, { endpoints: [webB1, ovnA], nodePort: true, externally: "Local" });
const hinted = workload(124, {
  endpoints: [{ host: webA1, zoneHints: ["z1"] }, { host: webB1, zoneHints: ["z2"] }, ovnB],
});
const annotated = workload(125, {
  endpoints: [webA1, ovnA],
  annotations: { "fairlead.dev/ownership": "ours" },
});
const dual = workload(126, { endpoints: [webB2, ovnA], families: ["IPv4", "IPv6"] });

const SKIPPED = { mixedServices: "skip" } as const;
const ALL = { mixedServices: "all" } as const;

export const mixedCases = [
  mixedRow("own-endpoints: those outside of the excluded network", mixedService, {
    from: clientA,
    expected: everyMode(plain([webA1, webB1])),
  }),
  mixedRow("own-endpoints: the node port", mixedService, {
    to: NODE_A.addresses.IPv4,
    port: mixedService.nodePort,
    from: outside,
    expected: everyMode(masqueraded([webA1, webB1])),
  }),
  mixedRow("own-endpoints: with none of them ready it is refused", ownUnready, {
    from: clientA,
    expected: noEndpoints,
  }),
  mixedRow("own-endpoints: an excluded endpoint here is no endpoint here", localExcluded, {
    to: NODE_A.addresses.IPv4,
    port: localExcluded.nodePort,
    from: outside,
    expected: exceptIpvs(DROP, plain([webB1])),
  }),
  mixedRow("own-endpoints: an excluded endpoint without hints does not undo the others'", hinted, {
    from: clientA,
    expected: everyMode(plain([webA1])),
  }),
  mixedRow("own-endpoints: IPv6", dual, {
    to: dual.clusterIP.IPv6,
    from: clientA,
    expected: everyMode(plain([webB2], { family: "IPv6" })),
  }),
  mixedRow("skip: left", mixedService, { from: clientA, options: SKIPPED, expected: everyMode(LEAVE) }),
  mixedRow("skip: the node port is left", mixedService, {
    to: NODE_A.addresses.IPv4,
    port: mixedService.nodePort,
    from: outside,
    options: SKIPPED,
    expected: everyMode(LEAVE),
  }),
  mixedRow("all: every endpoint", mixedService, {
    from: clientA,
    options: ALL,
    expected: everyMode(plain([webA1, webB1, ovnA, ovnB])),
  }),
  mixedRow("annotated ours: every endpoint", annotated, { from: clientA, expected: everyMode(plain([webA1, ovnA])) }),
];

const memoryRow = rowsOf("ownership over time");

/** States of one service: its endpoints come and go. */
const ovn = [
  workload(131, { endpoints: [ovnA, ovnB] }),
  workload(131, { endpoints: [] }),
  workload(131, { endpoints: [webA1] }),
] as const;
const ours = [workload(132, { endpoints: [webA1] }), workload(132, { endpoints: [] })] as const;
const taken = [workload(133, { endpoints: [webA1, webB1] }), workload(133, { endpoints: [ovnA] })] as const;
const given = [workload(134, { endpoints: [ovnA] }), workload(134, { endpoints: [webA1, webB1] })] as const;
const mixed = [workload(135, { endpoints: [webA1, ovnA] }), workload(135, { endpoints: [] })] as const;
const turned = [
  workload(136, { endpoints: [ovnA] }),
  workload(136, { endpoints: [] }),
  workload(136, { endpoints: [webA1] }),
] as const;
const deleted = workload(137, { endpoints: [ovnA] });
const returned = workload(137, { endpoints: [] });

export const memoryCases = [
  memoryRow("foreign, rolled out to zero: still left", ovn[1], {
    before: [ovn[0].objects],
    from: clientA,
    expected: everyMode(LEAVE),
  }),
  memoryRow("ours, rolled out to zero: refused", ours[1], {
    before: [ours[0].objects],
    from: clientA,
    expected: noEndpoints,
  }),
  memoryRow("mixed, rolled out to zero: refused", mixed[1], {
    before: [mixed[0].objects],
    from: clientA,
    expected: noEndpoints,
  }),
  memoryRow("never had an endpoint: ours, refused", workload(138, { endpoints: [] }), {
    from: clientA,
    expected: noEndpoints,
  }),
  memoryRow("ours becomes foreign: all traces go", taken[1], {
    before: [taken[0].objects],
    from: clientA,
    expected: everyMode(LEAVE),
  }),
  memoryRow("foreign becomes ours", given[1], {
    before: [given[0].objects],
    from: clientA,
    expected: everyMode(plain([webA1, webB1])),
  }),
  memoryRow("foreign, to zero, then ours", turned[2], {
    before: [turned[0].objects, turned[1].objects],
    from: clientA,
    expected: everyMode(plain([webA1])),
  }),
  memoryRow("foreign, deleted, made again without endpoints: ours, refused", returned, {
    before: [deleted.objects, []],
    from: clientA,
    expected: noEndpoints,
  }),
];
