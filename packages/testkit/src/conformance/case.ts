import { familyOf } from "@fairlead/base";
import type { IPFamily, Protocol } from "@fairlead/core";
import { addressOf, type Host } from "../addresses/host.ts";
import { NODE_A, NODE_A_ZONE } from "../addresses/hosts.ts";
import { NETWORKS, POD_BLOCKS } from "../addresses/networks.ts";
import { kubernetesService } from "../objects/kubernetes.ts";
import { node, serviceCIDR } from "../objects/node.ts";
import type { RawObject } from "../objects/raw.ts";
import type { Expected, Skip } from "./expected.ts";
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
