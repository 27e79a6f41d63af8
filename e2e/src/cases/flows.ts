/** Connections of every kind, and what `fairlead flows` says of them. */

import { familyOf, socketText } from "@fairlead/base";
import type { Flow } from "@fairlead/inspect";
import type { ProbeResult } from "@fairlead/lab/peer/protocol";
import { type Lab, type LabOptions, namespaceOf } from "@fairlead/lab/plain/lab";
import { fairlead } from "@fairlead/lab/tools/page-reader";
import {
  clientA,
  clusterObjects,
  type Host,
  hosts,
  NETWORKS,
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

/** Settings of node-a: what has ended is still known when it is asked for, on a busy machine too. */
export const REMEMBERED = {
  "net/netfilter/nf_conntrack_tcp_timeout_time_wait": "600",
  "net/netfilter/nf_conntrack_tcp_timeout_last_ack": "600",
  "net/netfilter/nf_conntrack_udp_timeout": "600",
};

/** What the two ends of real connections know of them. */
interface Made {
  /** How many connections were made, of services and not. */
  readonly connections: number;
  /** Those of services, as `flowLine` has them. */
  readonly lines: readonly string[];
}

interface ReportedFlows {
  readonly made: Made;
  /** What `fairlead flows` says of them, as `flowLine` has it. */
  readonly reported: readonly string[];
  readonly code: number;
}

const BOTH = ["IPv4", "IPv6"] as const;

const web = workload(141, { endpoints: [webA1, webB1], families: BOTH, loadBalancer: "VIP", external: true });

const ovn = workload(146, { endpoints: [ovnA], families: BOTH, loadBalancer: "VIP" });

const local = workload(142, { endpoints: [webA1, webA2, webB1], families: BOTH, nodePort: true, externally: "Local" });
const near = workload(143, { endpoints: [webA2, webB1], families: BOTH, internal: "Local" });
const dns = workload(144, { endpoints: [webA1, webB1], families: BOTH, protocol: "UDP", nodePort: true });
const sticky = workload(145, { endpoints: [webA1, webA2, webB1], families: BOTH, affinitySeconds: 600 });

const SERVICES = { web, local, near, dns, sticky, ovn };

/** Connections that another program makes, and their service. */
interface Call {
  readonly from: Host;
  readonly protocol: "TCP" | "UDP";
  readonly to: string;
  readonly port: number;
  /** Absent: they belong to no service. */
  readonly of?: { readonly service: string; readonly owner: "ours" | "foreign" };
}

/** Every kind of connection that a node sees, of services and not. */
const calls: readonly Call[] = BOTH.flatMap((family) => {
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
    // Of no service: pods and nodes by their own addresses, node ports' numbers at hosts that serve none.
    { from: clientA, protocol: "TCP", to: webB1.addresses[family], port: 8080 },
    { from: NODE_A, protocol: "TCP", to: webA1.addresses[family], port: 8080 },
    { from: clientA, protocol: "UDP", to: webA1.addresses[family], port: 8080 },
    { from: clientA, protocol: "TCP", to: NODE_B.addresses[family], port: web.nodePort },
    { from: clientA, protocol: "TCP", to: node, port: 8080 },
    { from: outside, protocol: "TCP", to: node, port: ovn.nodePort },
  ] satisfies Call[];
});

/** At least a thousand in all. */
const EACH = Math.ceil(1_000 / calls.length);

/**
 * Makes a thousand connections on a lab that an agent serves, and asks the tool for those of services.
 *
 * @param manifests the folder of the agent's objects
 * @param hold they stay open
 */
export async function flowsReported(lab: Lab, manifests: string, hold: boolean): Promise<ReportedFlows> {
  const made = await makeCalls(lab, EACH, hold);
  const own = ["--cluster-cidr", NETWORKS.calico.IPv4, "--cluster-cidr", NETWORKS.calico.IPv6];
  const others = ["--exclude-cluster-cidr", NETWORKS.ovn.IPv4, "--exclude-cluster-cidr", NETWORKS.ovn.IPv6];
  const where = ["-f", manifests, "--node", "node-a"];
  const { out, code } = await fairlead(lab, "flows", ...where, ...own, ...others, "-o", "json");
  const flows: readonly Flow[] = JSON.parse(out);
  return { made, reported: flows.map(flowLine).sort(), code };
}

export const flowObjects: readonly RawObject[] = [
  ...clusterObjects,
  ...[web, local, near, dns, sticky, ovn].flatMap(({ objects }) => objects),
];

/** Where the lab listens for these calls. */
export const flowPorts: LabOptions = {
  podPorts: { tcp: [80, 8080], udp: [8080] },
  landingPorts: { tcp: [80, 8080, web.nodePort, ovn.nodePort], udp: [80, 8080, dns.nodePort] },
};

const TIMEOUT_MS = 30_000;

/**
 * Makes all calls so many times, each on a connection of its own.
 *
 * @param hold they stay open until the lab is gone
 */
async function makeCalls(lab: Lab, each: number, hold = false): Promise<Made> {
  const made = await Promise.all(
    calls.map(async (call) => {
      const { from, protocol, to, port } = call;
      const results = await lab
        .peer(from)
        .send({ protocol, to, port, count: each, parallel: 8, timeoutMs: TIMEOUT_MS, hold });
      return results.map((result) => lineOf(call, result));
    }),
  );
  const all = made.flat();
  return { connections: all.length, lines: all.filter((line) => line !== undefined).sort() };
}

function lineOf(call: Call, result: ProbeResult): string | undefined {
  const { from, protocol, to, port, of } = call;
  const way = `${protocol} ${from.name} → ${socketText(to, port)}`;
  if (result.kind !== "answer") throw new Error(`${way}: ${result.kind === "error" ? result.code : result.kind}`);
  if (of === undefined) return undefined;
  const end = result.server === "sink" ? "not translated" : endpointOf(result.server, result.local, to);
  return `${protocol} ${result.sender} → ${socketText(to, port)} → ${end} ${of.service} ${of.owner}`;
}

/** The endpoint that answered. A UDP server knows its port only; its name gives the address. */
function endpointOf(server: string, local: string, to: string): string {
  const host = hosts.find((one) => namespaceOf(one) === server);
  if (host === undefined) throw new Error(`${server} is not a host of the lab`);
  return socketText(host.addresses[familyOf(to)], Number(local.slice(local.lastIndexOf(":") + 1)));
}

/** What `fairlead flows` says of a connection, in the same words. */
function flowLine({ protocol, client, frontend, endpoint, service, owner }: Flow): string {
  const end = endpoint === undefined ? "not translated" : socketText(endpoint.address, endpoint.port);
  const remark = endpoint === undefined || endpoint.condition === "ready" ? "" : ` (${endpoint.condition})`;
  const way = [client, frontend].map(({ address, port }) => socketText(address, port)).join(" → ");
  return `${protocol} ${way} → ${end}${remark} ${service} ${owner}`;
}

function served(name: keyof typeof SERVICES, at: (workload: Workload) => Pick<Call, "from" | "to" | "port">): Call {
  const { objects } = SERVICES[name];
  const service = `default/${objects[0]?.metadata.name}`;
  const owner = name === "ovn" ? "foreign" : "ours";
  return { protocol: name === "dns" ? "UDP" : "TCP", ...at(SERVICES[name]), of: { service, owner } };
}
