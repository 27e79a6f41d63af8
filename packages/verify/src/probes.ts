import type { ForwardingPlan, Frontend, LocalTrafficDetector, ServicePortGroup } from "@fairlead/core";
import type { Packet } from "@fairlead/trace";

/** A packet to a service. */
export interface Probe {
  /** `namespace/name:port` */
  readonly service: string;
  readonly packet: Packet;
}

/** Who sends, one for each class of senders that rules tell apart. */
export interface Senders {
  /** Of this node; absent: none of the node's own packets. */
  readonly nodeAddress?: string;
  /** Somebody outside of the cluster. */
  readonly outside: string;
  /** Where packets from elsewhere come in. */
  readonly outerInterface: string;
  /** A pod of this node, where an address tells it. */
  readonly pod?: string;
}

/** The first packets of connections to every frontend of a service, from everybody, its first endpoint included. */
export function* probesOf(
  group: ServicePortGroup,
  { node }: Pick<ForwardingPlan, "node">,
  senders: Senders,
): Generator<Probe> {
  for (const frontend of group.frontends) {
    const destination = frontend.address ?? nodePortAddress(node, senders);
    if (destination === undefined) continue;
    for (const source of sourcesOf(group, node.detector, senders)) {
      yield { service: group.name, packet: packetTo(group, frontend, destination, source) };
    }
  }
}

function nodePortAddress({ nodePortAddresses }: ForwardingPlan["node"], { nodeAddress }: Senders): string | undefined {
  if (nodePortAddresses.kind === "all") return nodeAddress;
  return nodePortAddresses.addresses.find((address) => !address.startsWith("127.") && address !== "::1");
}

type Source = Pick<Packet, "source" | "inInterface">;

function sourcesOf(group: ServicePortGroup, detector: LocalTrafficDetector, senders: Senders): readonly Source[] {
  const { nodeAddress, outside, outerInterface, pod } = senders;
  const inside = podInterface(detector);
  const endpoint = group.cluster[0]?.address;
  return [
    { source: outside, inInterface: outerInterface },
    ...(nodeAddress === undefined ? [] : [{ source: nodeAddress }]),
    ...(pod === undefined ? [] : [{ source: pod, inInterface: inside }]),
    ...(endpoint === undefined ? [] : [{ source: endpoint, inInterface: inside }]),
  ];
}

function podInterface(detector: LocalTrafficDetector): string {
  if (detector.kind === "bridge") return detector.interface;
  return detector.kind === "interface-prefix" ? `${detector.prefix}0` : "pod0";
}

function packetTo(
  { family, protocol }: ServicePortGroup,
  { port }: Frontend,
  destination: string,
  from: Source,
): Packet {
  return { family, protocol: protocol.toLowerCase(), ...from, destination, sport: 40_000, dport: port };
}
