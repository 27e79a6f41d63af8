/** Packets to Services whose EndpointSlices have weights, and what is refused of them. */

import { clientA, NODE_A, outside, webA1, webA2, webB1 } from "../../addresses.ts";
import { rowsOf, workload } from "../case.ts";
import { EMPTY, everyMode, exceptIpvs, masqueraded, plain, REJECT, weighted } from "../expected.ts";

const row = rowsOf("weights");

const all = [webA1, webA2, webB1];
const canary = [
  { weight: "9", endpoints: [webA1, webA2] },
  { weight: "1", endpoints: [webB1] },
];
const none = { endpoints: [] };

const web = workload(144, { ...none, weighted: canary, families: ["IPv4", "IPv6"], nodePort: true });
const udp = workload(145, { ...none, weighted: canary, protocol: "UDP" });
const sticky = workload(146, { ...none, weighted: canary, affinitySeconds: 600, nodePort: true });
const off = workload(147, { ...none, weighted: [{ weight: "0", endpoints: [webA1] }, ...canary.slice(1)] });
const local = workload(148, {
  ...none,
  weighted: [
    { weight: "4", endpoints: [webA1, webB1] },
    { weight: "1", endpoints: [webA2] },
  ],
  nodePort: true,
  externally: "Local",
});
const gone = workload(149, {
  ...none,
  weighted: [{ weight: "9", endpoints: [{ host: webA1, ready: false, serving: false }] }, ...canary.slice(1)],
});
const unreadable = workload(150, {
  ...none,
  weighted: [
    { weight: "most of it", endpoints: [webA1] },
    { weight: "3", endpoints: [webB1] },
  ],
});
const refusing = workload(153, {
  ...none,
  weighted: [
    { weight: "3", endpoints: [webA1] },
    { weight: "1", endpoints: [] },
  ],
  loadBalancer: "VIP",
  external: true,
  sourceRanges: ["198.51.100.0/24"],
});
const refusingAll = workload(154, { ...none, weighted: [{ weight: "1", endpoints: [] }] });
const refusingLocal = workload(155, {
  ...none,
  weighted: [
    { weight: "1", endpoints: [webA1] },
    { weight: "1", endpoints: [webB1] },
    { weight: "2", endpoints: [] },
  ],
  nodePort: true,
  externally: "Local",
});

const toNodePort = ({ nodePort }: typeof web) => ({ to: NODE_A.addresses.IPv4, port: nodePort });
/** ipvs mode cannot refuse a share: the others get it. */
const quarterRefused = (outcome: ReturnType<typeof plain>) => exceptIpvs(weighted(outcome, 0.75, 0.25), outcome);

export const weightCases = [
  row("a slice's share is split among its endpoints", web, {
    from: clientA,
    expected: everyMode(weighted(plain(all), 0.45, 0.45, 0.1)),
  }),
  row("at the node port", web, {
    ...toNodePort(web),
    from: outside,
    expected: everyMode(weighted(masqueraded(all), 0.45, 0.45, 0.1)),
  }),
  row("IPv6", web, {
    from: clientA,
    to: web.clusterIP.IPv6,
    expected: everyMode(weighted(plain(all, { family: "IPv6" }), 0.45, 0.45, 0.1)),
  }),
  row("UDP", udp, {
    from: clientA,
    protocol: "UDP",
    expected: everyMode(weighted(plain(all), 0.45, 0.45, 0.1)),
  }),
  row("a client with affinity stays with its endpoint", sticky, {
    from: clientA,
    sticky: true,
    expected: everyMode(weighted(plain(all), 0.45, 0.45, 0.1)),
  }),
  row("a client with affinity stays with it at the node port", sticky, {
    ...toNodePort(sticky),
    from: outside,
    sticky: true,
    expected: everyMode(weighted(masqueraded(all), 0.45, 0.45, 0.1)),
  }),
  row("an endpoint that weighs 0 gets nothing", off, { from: clientA, expected: everyMode(plain([webB1])) }),
  row("a share without a usable endpoint goes to the others", gone, {
    from: clientA,
    expected: everyMode(plain([webB1])),
  }),
  row("external Local divides by the endpoints here", local, {
    ...toNodePort(local),
    from: outside,
    expected: everyMode(weighted(plain([webA1, webA2]), 0.8, 0.2)),
  }),
  row("external Local: a pod takes the short cut", local, {
    ...toNodePort(local),
    from: clientA,
    expected: exceptIpvs(
      weighted(plain([webA1, webB1, webA2]), 0.4, 0.4, 0.2),
      weighted(plain([webA1, webA2]), 0.8, 0.2),
    ),
  }),
  row("a weight that cannot be read is as without it", unreadable, {
    from: clientA,
    expected: everyMode(weighted(plain([webA1, webB1]), 0.25, 0.75)),
  }),
  row("a share is refused", refusing, { from: clientA, expected: quarterRefused(plain([webA1])) }),
  row("a share is refused to the node", refusing, {
    from: NODE_A,
    expected: quarterRefused(masqueraded([webA1])),
  }),
  row("a share is refused at the node port", refusing, {
    ...toNodePort(refusing),
    from: outside,
    expected: quarterRefused(masqueraded([webA1])),
  }),
  row("a share is refused at an external address", refusing, {
    to: refusing.externalIP.IPv4,
    from: outside,
    expected: quarterRefused(masqueraded([webA1])),
  }),
  row("a share is refused to the node at an external address", refusing, {
    to: refusing.externalIP.IPv4,
    from: NODE_A,
    expected: quarterRefused(masqueraded([webA1])),
  }),
  row("a share is refused to clients in the source ranges", refusing, {
    to: refusing.loadBalancerIP.IPv4,
    from: outside,
    expected: quarterRefused(masqueraded([webA1])),
  }),
  row("all is refused", refusingAll, { from: clientA, expected: exceptIpvs(REJECT, EMPTY) }),
  row("external Local: a share is refused", refusingLocal, {
    ...toNodePort(refusingLocal),
    from: outside,
    expected: exceptIpvs(weighted(plain([webA1]), 1 / 3, 2 / 3), plain([webA1])),
  }),
  row("external Local: a share is refused to a pod on the short cut", refusingLocal, {
    ...toNodePort(refusingLocal),
    from: clientA,
    expected: exceptIpvs(weighted(plain([webA1, webB1]), 0.25, 0.25, 0.5), plain([webA1])),
  }),
];
