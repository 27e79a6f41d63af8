/** Packets to Services with annotations that say which clients may use them, and what becomes of the others. */

import {
  clientA,
  NETWORKS,
  NODE_A,
  NODE_B,
  outside,
  SECOND_NODE_ADDRESS,
  stranger,
  webA1,
  webB1,
  webB2,
} from "../../addresses.ts";
import { rowsOf, workload } from "../case.ts";
import { DROP, EMPTY, everyMode, exceptIptables, exceptIpvs, LEAVE, masqueraded, plain, REJECT } from "../expected.ts";

const endpoints = [webA1, webB1];
const both = masqueraded(endpoints);

const rangesRow = rowsOf("node-port source ranges");

const ranges = (...cidrs: readonly string[]) => ({ "fairlead.dev/node-port-source-ranges": cidrs.join(", ") });
const nodePort = true;

const gated = workload(61, { endpoints, nodePort, annotations: ranges(NETWORKS.outside.IPv4) });
const gatedForInside = workload(62, {
  endpoints,
  nodePort,
  annotations: ranges(NETWORKS.calico.IPv4, NETWORKS.nodes.IPv4),
});
const gatedLocal = workload(63, {
  endpoints,
  nodePort,
  externally: "Local",
  annotations: ranges(NETWORKS.outside.IPv4),
});
const gatedDual = workload(64, {
  endpoints,
  nodePort,
  families: ["IPv4", "IPv6"],
  annotations: ranges(NETWORKS.outside.IPv4, NETWORKS.outside.IPv6),
});
const gatedOneFamily = workload(65, {
  endpoints,
  nodePort,
  families: ["IPv4", "IPv6"],
  annotations: ranges(NETWORKS.outside.IPv4),
});
const unreadable = workload(66, { endpoints, nodePort, annotations: ranges(NETWORKS.outside.IPv4, "the office") });
const open = workload(67, { endpoints, nodePort, annotations: ranges("0.0.0.0/0") });
const balanced = workload(68, {
  endpoints,
  loadBalancer: "VIP",
  sourceRanges: [NETWORKS.strangers.IPv4],
  annotations: ranges(NETWORKS.outside.IPv4),
});
const chosen = workload(69, {
  endpoints,
  nodePort,
  annotations: { ...ranges(NETWORKS.outside.IPv4), "fairlead.dev/node-port-addresses": "10.202.0.0/24" },
});
const gatedUdp = workload(70, {
  endpoints,
  nodePort,
  protocol: "UDP",
  annotations: ranges(NETWORKS.outside.IPv4),
});
const gatedNone = workload(79, { endpoints: [], nodePort, annotations: ranges(NETWORKS.outside.IPv4) });

const TO_NODE = { to: NODE_A.addresses.IPv4 } as const;
/** Every mode serves node ports on both addresses of the node. */
const ON_BOTH = {
  options: { nodePortAddresses: [NETWORKS.nodes.IPv4, NETWORKS.nodes.IPv6, "10.202.0.0/24", "fd00:202::/64"] },
} as const;

export const nodePortRangesCases = [
  rangesRow("a client in them", gated, {
    ...TO_NODE,
    port: gated.nodePort,
    from: outside,
    expected: everyMode(both),
  }),
  rangesRow("a client that is not in them is dropped", gated, {
    ...TO_NODE,
    port: gated.nodePort,
    from: stranger,
    expected: everyMode(DROP),
  }),
  rangesRow("a pod that is not in them is dropped", gated, {
    ...TO_NODE,
    port: gated.nodePort,
    from: clientA,
    expected: everyMode(DROP),
  }),
  rangesRow("the node that is not in them is dropped", gated, {
    ...TO_NODE,
    port: gated.nodePort,
    from: NODE_A,
    expected: everyMode(DROP),
  }),
  rangesRow("another node that is not in them is dropped", gated, {
    ...TO_NODE,
    port: gated.nodePort,
    from: NODE_B,
    expected: everyMode(DROP),
  }),
  rangesRow("a pod in them", gatedForInside, {
    ...TO_NODE,
    port: gatedForInside.nodePort,
    from: clientA,
    expected: everyMode(both),
  }),
  rangesRow("the node in them", gatedForInside, {
    ...TO_NODE,
    port: gatedForInside.nodePort,
    from: NODE_A,
    expected: everyMode(both),
  }),
  rangesRow("another address of the node, which is not in them", gatedForInside, {
    ...ON_BOTH,
    to: SECOND_NODE_ADDRESS.IPv4,
    port: gatedForInside.nodePort,
    from: NODE_A,
    source: SECOND_NODE_ADDRESS.IPv4,
    expected: everyMode(DROP),
  }),
  rangesRow("localhost that is not in them", gatedForInside, {
    to: "127.0.0.1",
    source: "127.0.0.1",
    port: gatedForInside.nodePort,
    from: NODE_A,
    expected: exceptIptables(DROP, LEAVE),
  }),
  rangesRow("localhost without node ports is the node's own", gatedForInside, {
    to: "127.0.0.1",
    source: "127.0.0.1",
    port: gatedForInside.nodePort,
    from: NODE_A,
    options: { localhostNodePorts: false },
    expected: everyMode(LEAVE),
  }),
  rangesRow("the ClusterIP has none", gated, { from: clientA, expected: everyMode(plain(endpoints)) }),
  rangesRow("the load balancer's address has its own", balanced, {
    to: balanced.loadBalancerIP.IPv4,
    from: stranger,
    expected: everyMode(both),
  }),
  rangesRow("the load balancer's address does not follow them", balanced, {
    to: balanced.loadBalancerIP.IPv4,
    from: outside,
    expected: everyMode(DROP),
  }),
  rangesRow("the load balancer's ranges do not hold at the node port", balanced, {
    ...TO_NODE,
    port: balanced.nodePort,
    from: stranger,
    expected: everyMode(DROP),
  }),
  rangesRow("a node port of a load balancer", balanced, {
    ...TO_NODE,
    port: balanced.nodePort,
    from: outside,
    expected: everyMode(both),
  }),
  rangesRow("under Local a client in them keeps its address", gatedLocal, {
    ...TO_NODE,
    port: gatedLocal.nodePort,
    from: outside,
    expected: everyMode(plain([webA1])),
  }),
  rangesRow("under Local a pod takes no short cut past them", gatedLocal, {
    ...TO_NODE,
    port: gatedLocal.nodePort,
    from: clientA,
    expected: everyMode(DROP),
  }),
  rangesRow("UDP from a client in them", gatedUdp, {
    ...TO_NODE,
    port: gatedUdp.nodePort,
    protocol: "UDP",
    from: outside,
    expected: everyMode(both),
  }),
  rangesRow("UDP from a client that is not in them", gatedUdp, {
    ...TO_NODE,
    port: gatedUdp.nodePort,
    protocol: "UDP",
    from: stranger,
    expected: everyMode(DROP),
  }),
  rangesRow("IPv6: a client in them", gatedDual, {
    to: NODE_A.addresses.IPv6,
    port: gatedDual.nodePort,
    from: outside,
    expected: everyMode(masqueraded(endpoints, { family: "IPv6" })),
  }),
  rangesRow("IPv6: a client that is not in them is dropped", gatedDual, {
    to: NODE_A.addresses.IPv6,
    port: gatedDual.nodePort,
    from: stranger,
    expected: everyMode(DROP),
  }),
  rangesRow("a family without one lets no client in", gatedOneFamily, {
    to: NODE_A.addresses.IPv6,
    port: gatedOneFamily.nodePort,
    from: outside,
    expected: everyMode(DROP),
  }),
  rangesRow("a value that cannot be read lets no client in", unreadable, {
    ...TO_NODE,
    port: unreadable.nodePort,
    from: outside,
    expected: everyMode(DROP),
  }),
  rangesRow("a range of all clients", open, {
    ...TO_NODE,
    port: open.nodePort,
    from: stranger,
    expected: everyMode(both),
  }),
  rangesRow("on a chosen address a client in them", chosen, {
    ...ON_BOTH,
    to: SECOND_NODE_ADDRESS.IPv4,
    port: chosen.nodePort,
    from: outside,
    expected: everyMode(both),
  }),
  rangesRow("on a chosen address a client that is not in them", chosen, {
    ...ON_BOTH,
    to: SECOND_NODE_ADDRESS.IPv4,
    port: chosen.nodePort,
    from: stranger,
    expected: everyMode(DROP),
  }),
  rangesRow("no endpoints: a client that is not in them", gatedNone, {
    ...TO_NODE,
    port: gatedNone.nodePort,
    from: stranger,
    // As for a load balancer's: iptables mode asks for no ranges where nothing is served.
    expected: exceptIptables(REJECT, DROP),
  }),
];

const refusedRow = rowsOf("no local endpoint");

const refuses = { "fairlead.dev/no-local-endpoint": "reject" };
const elsewhere = workload(88, {
  endpoints: [webB1, webB2],
  externally: "Local",
  nodePort,
  annotations: refuses,
});
const balancedElsewhere = workload(89, {
  endpoints: [webB1],
  externally: "Local",
  loadBalancer: "VIP",
  annotations: refuses,
});
const internalElsewhere = workload(90, { endpoints: [webB1], internal: "Local", annotations: refuses });
const here = workload(99, { endpoints, externally: "Local", nodePort, annotations: refuses });
const wrong = workload(100, {
  endpoints: [webB1],
  internal: "Local",
  annotations: { "fairlead.dev/no-local-endpoint": "refuse" },
});

const gatedElsewhere = workload(80, {
  endpoints: [webB1],
  externally: "Local",
  loadBalancer: "VIP",
  sourceRanges: [NETWORKS.outside.IPv4],
  annotations: { ...refuses, ...ranges(NETWORKS.outside.IPv4) },
});

/** ipvs: a virtual server without destinations answers as REJECT does. */
const refused = exceptIpvs(REJECT, EMPTY);

export const noLocalEndpointCases = [
  refusedRow("a client outside is refused at the node port", elsewhere, {
    ...TO_NODE,
    port: elsewhere.nodePort,
    from: outside,
    expected: refused,
  }),
  refusedRow("a pod takes the short cut, where the mode has one", elsewhere, {
    ...TO_NODE,
    port: elsewhere.nodePort,
    from: clientA,
    expected: exceptIpvs(plain([webB1, webB2]), EMPTY),
  }),
  refusedRow("the ClusterIP goes everywhere", elsewhere, {
    from: clientA,
    expected: everyMode(plain([webB1, webB2])),
  }),
  refusedRow("a client outside is refused at the load balancer's address", balancedElsewhere, {
    to: balancedElsewhere.loadBalancerIP.IPv4,
    from: outside,
    expected: refused,
  }),
  refusedRow("a pod is refused at the ClusterIP under internal policy Local", internalElsewhere, {
    from: clientA,
    expected: refused,
  }),
  refusedRow("the node is refused there", internalElsewhere, { from: NODE_A, expected: refused }),
  ...(["node port", "load balancer's address"] as const).flatMap((frontend) => {
    const reached =
      frontend === "node port"
        ? { ...TO_NODE, port: gatedElsewhere.nodePort }
        : { to: gatedElsewhere.loadBalancerIP.IPv4 };
    return [
      refusedRow(`a client in the source ranges of a ${frontend} is refused`, gatedElsewhere, {
        ...reached,
        from: outside,
        expected: refused,
      }),
      refusedRow(`a client that is not in those of a ${frontend} is dropped`, gatedElsewhere, {
        ...reached,
        from: stranger,
        expected: everyMode(DROP),
      }),
    ];
  }),
  refusedRow("changes nothing where there is an endpoint", here, {
    ...TO_NODE,
    port: here.nodePort,
    from: outside,
    expected: everyMode(plain([webA1])),
  }),
  refusedRow("a value that cannot be read is as without it", wrong, {
    from: clientA,
    expected: exceptIpvs(DROP, EMPTY),
  }),
];

const ipModeRow = rowsOf("load-balancer IP mode");

const left = workload(105, {
  endpoints,
  loadBalancer: "VIP",
  annotations: { "fairlead.dev/load-balancer-ip-mode": "Proxy" },
});
const kept = workload(106, {
  endpoints,
  loadBalancer: "Proxy",
  annotations: { "fairlead.dev/load-balancer-ip-mode": "VIP" },
});

export const ipModeCases = [
  ipModeRow("Proxy: a pod's packets go to the load balancer", left, {
    to: left.loadBalancerIP.IPv4,
    from: clientA,
    expected: everyMode(LEAVE),
  }),
  ipModeRow("Proxy: the node port is served", left, {
    ...TO_NODE,
    port: left.nodePort,
    from: outside,
    expected: everyMode(both),
  }),
  ipModeRow("VIP does not go before what the cloud says", kept, {
    to: kept.loadBalancerIP.IPv4,
    from: clientA,
    expected: everyMode(LEAVE),
  }),
];
