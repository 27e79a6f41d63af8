import { clientA, NODE_A, outside, ovnA, ovnClient, webA1, webB1 } from "../../addresses.ts";
import { endpointSlice } from "../../objects.ts";
import { conformanceCase, rowsOf, workload } from "../case.ts";
import { everyMode, LEAVE, masqueraded, noEndpoints, plain } from "../expected.ts";

const TOPIC = "dual stack";
const row = rowsOf(TOPIC);

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
  row("IPv4 from a pod", web, { from: clientA, expected: everyMode(plain([webA1, webB1])) }),
  row("IPv6 from a pod", web, {
    to: web.clusterIP.IPv6,
    from: clientA,
    expected: everyMode(plain([webA1, webB1], { family: FAMILY })),
  }),
  row("IPv6 from the node", web, {
    to: web.clusterIP.IPv6,
    from: NODE_A,
    expected: everyMode(masqueraded([webA1, webB1], { family: FAMILY })),
  }),
  row("IPv6 from outside", web, {
    to: web.clusterIP.IPv6,
    from: outside,
    expected: everyMode(masqueraded([webA1, webB1], { family: FAMILY })),
  }),
  row("IPv6 from a pod of the other network", web, {
    to: web.clusterIP.IPv6,
    from: ovnClient,
    expected: everyMode(masqueraded([webA1, webB1], { family: FAMILY })),
  }),
  row("endpoints in IPv4 alone: IPv6 is refused", v4Only, {
    to: v4Only.clusterIP.IPv6,
    from: clientA,
    expected: noEndpoints,
  }),
  row("endpoints in IPv4 alone: IPv4 serves", v4Only, { from: clientA, expected: everyMode(plain([webA1])) }),
  row("endpoints in IPv6 alone: IPv4 is refused", v6Only, { from: clientA, expected: noEndpoints }),
  row("a service of IPv6 alone, UDP", singleV6, {
    to: singleV6.clusterIP.IPv6,
    protocol: "UDP",
    from: clientA,
    expected: everyMode(plain([webA1, webB1], { family: FAMILY })),
  }),
  conformanceCase(TOPIC, "foreign in IPv4, ours in IPv6: IPv4 is left", {
    history: [splitObjects],
    from: clientA,
    to: split.clusterIP.IPv4,
    port: 80,
    expected: everyMode(LEAVE),
  }),
  conformanceCase(TOPIC, "foreign in IPv4, ours in IPv6: IPv6 serves", {
    history: [splitObjects],
    from: clientA,
    to: split.clusterIP.IPv6,
    port: 80,
    expected: everyMode(plain([webA1], { family: FAMILY })),
  }),
];
