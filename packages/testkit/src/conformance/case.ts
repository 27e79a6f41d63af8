/** A case of the conformance table: objects, packets and what is expected of them in each mode. */

import { contains, familyOf } from "@fairlead/base";
import type { IPFamily, Protocol, TrafficPolicy } from "@fairlead/core";
import { addressOf, type Host, NETWORKS, NODE_A, NODE_A_ZONE, POD_BLOCKS } from "../addresses.ts";
import {
  type EndpointFields,
  endpointSlice,
  kubernetesService,
  node,
  type RawObject,
  service,
  serviceCIDR,
} from "../objects.ts";
import { DROP, type Expected, LEAVE, type Outcome, REJECT, type Skip } from "./expected.ts";
import { type AgentOptions, STANDARD_OPTIONS } from "./options.ts";

/** The first packet of a connection, as it reaches the node under test or starts there. */
export interface CasePacket {
  readonly from: Host;
  readonly source: string;
  readonly destination: string;
  readonly port: number;
  readonly protocol: Protocol;
}

/** One row of the conformance table: what becomes of one packet, in each mode. Data only. */
export interface ConformanceCase {
  /** Unique; reads as a sentence about the packet. */
  readonly name: string;
  readonly topic: string;
  /**
   * The states of the cluster in order, each complete; the packet meets the last. More than one where what was before
   * matters (the ownership memory).
   */
  readonly history: readonly (readonly RawObject[])[];
  readonly options: AgentOptions;
  readonly packet: CasePacket;
  readonly expected: Expected;
  /** Later packets of the same sender go where its first one went. */
  readonly sticky: boolean;
  /** Why real packets cannot show it; absent where they can. */
  readonly unreal?: Skip;
}

export interface CaseFields {
  readonly from: Host;
  readonly to: string;
  readonly port: number;
  /** Default TCP. */
  readonly protocol?: Protocol;
  /** Default: the sender's address of the destination's family. */
  readonly source?: string;
  /** States of the cluster without what is there in all of them. */
  readonly history: readonly (readonly RawObject[])[];
  /** Alongside the standard ones. */
  readonly options?: Partial<AgentOptions>;
  readonly expected: Expected;
  readonly sticky?: boolean;
  readonly unreal?: Skip;
}

export function conformanceCase(topic: string, name: string, fields: CaseFields): ConformanceCase {
  const { from, to, port, protocol = "TCP", sticky = false } = fields;
  const source = fields.source ?? addressOf(from, familyOf(to));
  return {
    name: `${topic}: ${name}`,
    topic,
    history: fields.history.map((state) => [...clusterObjects, ...state]),
    options: { ...STANDARD_OPTIONS, ...fields.options },
    packet: { from, source, destination: to, port, protocol },
    expected: fields.expected,
    sticky,
    ...(fields.unreal && { unreal: fields.unreal }),
  };
}

/** What each state of the cluster has: the own Node, default/kubernetes and the service ranges. */
export const clusterObjects: readonly RawObject[] = [
  node(NODE_A.name, {
    zone: NODE_A_ZONE,
    addresses: [NODE_A.addresses.IPv4, NODE_A.addresses.IPv6],
    podCIDRs: [POD_BLOCKS["node-a"].calico.IPv4, POD_BLOCKS["node-a"].calico.IPv6],
  }),
  serviceCIDR("kubernetes", [NETWORKS.services.IPv4, NETWORKS.services.IPv6]),
  ...kubernetesService(),
];

export function packetFamily(packet: CasePacket): IPFamily {
  return familyOf(packet.destination);
}

/** An endpoint of a workload: a host, ready unless it says otherwise. */
export type WorkloadEndpoint = Host | ({ readonly host: Host } & Omit<EndpointFields, "address" | "nodeName">);

interface WeightedFields {
  /** As the annotation has it. */
  readonly weight: string;
  /** None: the share is refused. */
  readonly endpoints: readonly WorkloadEndpoint[];
}

export interface WorkloadFields {
  readonly endpoints: readonly WorkloadEndpoint[];
  /** Slices of their own, each with its weight, alongside the one of `endpoints`. */
  readonly weighted?: readonly WeightedFields[];
  /** Default ["IPv4"]. */
  readonly families?: readonly IPFamily[];
  /** Families in which it has endpoints; default: all of them. */
  readonly servedFamilies?: readonly IPFamily[];
  /** Which frontends it has alongside its ClusterIP. */
  readonly nodePort?: boolean;
  readonly external?: boolean;
  readonly loadBalancer?: "VIP" | "Proxy";
  /** Default TCP. */
  readonly protocol?: Protocol;
  /** Default 80. */
  readonly port?: number;
  /** Default 8080. */
  readonly targetPort?: number;
  readonly internal?: TrafficPolicy;
  readonly externally?: TrafficPolicy;
  readonly sourceRanges?: readonly string[];
  readonly affinitySeconds?: number;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly gateway?: string;
}

/** A service with its endpoints, and the addresses at which it is to be had. All of them follow from its number. */
export interface Workload {
  readonly objects: readonly RawObject[];
  readonly clusterIP: Readonly<Record<IPFamily, string>>;
  readonly externalIP: Readonly<Record<IPFamily, string>>;
  readonly loadBalancerIP: Readonly<Record<IPFamily, string>>;
  readonly port: number;
  readonly nodePort: number;
  readonly healthCheckPort: number;
}

/** @param number 1…199, unique among the workloads of a table but for those that are states of one service */
export function workload(number: number, fields: WorkloadFields): Workload {
  const name = `svc-${number}`;
  const addresses = workloadAddresses(number, fields.port ?? 80);
  const families = fields.families ?? ["IPv4"];
  const shares = [fields, ...(fields.weighted ?? []).map((share) => ({ ...fields, ...share }))];
  const slices = (fields.servedFamilies ?? families).flatMap((family) =>
    shares.map((share, at) => slice(name, family, share, at)),
  );
  return { ...addresses, objects: [service(name, serviceFields(addresses, families, fields)), ...slices] };
}

/**
 * What a row says alongside its workload: the packet goes to the IPv4 ClusterIP and the service port unless it says
 * otherwise.
 */
type RowFields = Omit<CaseFields, "to" | "port" | "history"> &
  Partial<Pick<CaseFields, "to" | "port">> & {
    /** States before the workload's own. */
    readonly before?: readonly (readonly RawObject[])[];
  };

type Row = (name: string, workload: Workload, fields: RowFields) => ConformanceCase;

export function rowsOf(topic: string): Row {
  return (name, workload, { before = [], ...fields }) =>
    conformanceCase(topic, name, {
      to: workload.clusterIP.IPv4,
      port: workload.port,
      ...fields,
      history: [...before, workload.objects],
    });
}

/** Two proxies on one node: the one that serves the row, and another one that has no service. */
export interface Alongside {
  /** The one that serves is the node's first, not one with a service proxy name. */
  readonly isFirst: boolean;
  /** Whether the other one refuses ClusterIPs without a service: a first one in nftables mode does, no other may. */
  readonly refuses: "unknown ClusterIPs" | "nothing of others";
}

/** What becomes of a row's packet: in nftables mode as without the other one, but for ClusterIPs without a service. */
export function alongsideExpected(row: ConformanceCase, { isFirst, refuses }: Alongside): Outcome | Skip {
  const { expected, packet, history } = row;
  const { nftables } = expected;
  if ("skip" in nftables) return nftables;
  const toClusterIP = contains(NETWORKS.services[familyOf(packet.destination)], packet.destination);
  if (!toClusterIP || isFirst) return nftables;
  // Another network's: the first proxy knows as little of it as of any service with a label.
  if (nftables.verdict === "leave" && refuses === "unknown ClusterIPs") return DROP;
  const isUnserved = !JSON.stringify(history.at(-1)).includes(`"${packet.destination}"`);
  return isUnserved && refuses === "nothing of others" ? LEAVE : nftables;
}

/**
 * The row as it is for nftables mode, where node ports are served on the node's primary addresses if nothing else is
 * said.
 */
export function nftablesRow(row: ConformanceCase): ConformanceCase {
  if (row.options.nodePortAddresses.length > 0) return row;
  const { IPv4, IPv6 } = NODE_A.addresses;
  return { ...row, options: { ...row.options, nodePortAddresses: [`${IPv4}/32`, `${IPv6}/128`] } };
}

/**
 * What becomes of a row's packet in userspace mode: the same as in iptables mode, but that every endpoint sees the
 * node, which asks in the client's place, and that SCTP cannot be relayed and is refused.
 */
export function userspaceExpected({ expected: { iptables }, packet }: ConformanceCase): Outcome | Skip {
  if ("skip" in iptables || iptables.verdict !== "endpoints") return iptables;
  if (packet.protocol === "SCTP") return REJECT;
  return { ...iptables, landings: iptables.landings.map((landing) => ({ ...landing, masqueraded: true })) };
}

function workloadAddresses(number: number, port: number): Omit<Workload, "objects"> {
  return {
    clusterIP: { IPv4: `10.96.2.${number}`, IPv6: `fd00:10:96::2:${number}` },
    externalIP: { IPv4: `192.0.2.${number}`, IPv6: `fd00:192::${number}` },
    loadBalancerIP: { IPv4: `203.0.113.${number}`, IPv6: `fd00:203::${number}` },
    port,
    nodePort: 30_000 + number,
    healthCheckPort: 31_000 + number,
  };
}

function serviceFields(addresses: Omit<Workload, "objects">, families: readonly IPFamily[], fields: WorkloadFields) {
  const { port, nodePort, healthCheckPort } = addresses;
  const of = (kind: Readonly<Record<IPFamily, string>>) => families.map((family) => kind[family]);
  const { loadBalancer, protocol = "TCP", targetPort = 8080, internal, externally } = fields;
  const hasNodePort = fields.nodePort === true || loadBalancer !== undefined;
  return {
    type: serviceType(fields),
    clusterIPs: of(addresses.clusterIP),
    ports: [{ port, targetPort, protocol, ...(hasNodePort && { nodePort }) }],
    ...(fields.external && { externalIPs: of(addresses.externalIP) }),
    ...(loadBalancer && { ingress: of(addresses.loadBalancerIP).map((ip) => ({ ip, ipMode: loadBalancer })) }),
    ...(fields.sourceRanges && { sourceRanges: fields.sourceRanges }),
    ...(internal && { internalTrafficPolicy: internal }),
    ...(externally && { externalTrafficPolicy: externally }),
    ...(loadBalancer && externally === "Local" && { healthCheckNodePort: healthCheckPort }),
    ...(fields.affinitySeconds !== undefined && { affinitySeconds: fields.affinitySeconds }),
    ...(fields.annotations && { annotations: fields.annotations }),
    ...(fields.labels && { labels: fields.labels }),
    ...(fields.gateway !== undefined && { gateway: fields.gateway }),
  } as const;
}

function serviceType({ loadBalancer, nodePort }: WorkloadFields) {
  if (loadBalancer !== undefined) return "LoadBalancer";
  return nodePort === true ? "NodePort" : "ClusterIP";
}

function slice(
  service: string,
  family: IPFamily,
  fields: WorkloadFields & Partial<WeightedFields>,
  at: number,
): RawObject {
  const { protocol = "TCP", targetPort = 8080, weight, endpoints } = fields;
  const refused = endpoints.length === 0 && { "fairlead.dev/weight-refused": "true" };
  return endpointSlice(`${service}-${family.toLowerCase()}${at === 0 ? "" : `-${at}`}`, {
    ...(weight !== undefined && { annotations: { "fairlead.dev/weight": weight, ...refused } }),
    service,
    family,
    ports: [{ port: targetPort, protocol }],
    endpoints: endpoints.map((endpoint) => endpointFields(endpoint, family)),
  });
}

function endpointFields(endpoint: WorkloadEndpoint, family: IPFamily): EndpointFields {
  const { host, ...conditions } = "host" in endpoint ? endpoint : { host: endpoint };
  return {
    address: addressOf(host, family),
    ...(host.node !== undefined && { nodeName: host.node }),
    ...conditions,
  };
}
