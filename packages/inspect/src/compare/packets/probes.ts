import type { Frontend, NodePlan, ServicePortGroup } from "@fairlead/core";
import type { Packet } from "@fairlead/trace";
import { excludedSources, podInterface, type Source, sourcesOf } from "./sources.ts";

/** The first packet of a connection to a service, of a kind that rules may tell from others. */
export interface Probe {
  /** `namespace/name:port` */
  readonly service: string;
  readonly frontend: Frontend & { readonly address: string };
  readonly source: Source;
  readonly packet: Packet;
}

/**
 * Packets to every frontend of a group from a source of each class, of which the node's own begin where it is reached.
 *
 * @param nodeAddress where node ports are asked for, and the source of the node's own packets; absent: neither is
 */
export function* probesOf(
  group: ServicePortGroup,
  node: NodePlan,
  nodeAddress: string | undefined,
): Generator<Probe, void, void> {
  yield* probesFrom(group, node, nodeAddress, (frontend) => [
    ...sourcesOf({ family: group.family, detector: node.detector, nodeAddress }),
    ...excludedSources(frontend),
  ]);
}

/** Packets from the group's first endpoint, which may come to itself. */
export function* endpointProbesOf(
  group: ServicePortGroup,
  node: NodePlan,
  nodeAddress: string | undefined,
): Generator<Probe, void, void> {
  const [endpoint] = group.cluster;
  if (endpoint === undefined) return;
  const source: Source = { class: "pod", address: endpoint.address, inInterface: podInterface(node.detector) };
  yield* probesFrom(group, node, nodeAddress, () => [source]);
}

/** Packets to every frontend of a group from the sources that are given for it. */
export function* probesFrom(
  group: ServicePortGroup,
  node: NodePlan,
  nodeAddress: string | undefined,
  sourcesTo: (frontend: Frontend) => readonly Source[],
): Generator<Probe, void, void> {
  for (const one of group.frontends) {
    const address = one.address ?? nodePortAddress(node, nodeAddress);
    if (address === undefined) continue;
    const frontend = { ...one, address };
    for (const source of sourcesTo(one)) {
      yield { service: group.name, frontend, source, packet: packetTo(group, frontend, source) };
    }
  }
}

/** Of a list those that are not loopback: from there only the node itself gets through. */
function nodePortAddress({ nodePortAddresses }: NodePlan, nodeAddress: string | undefined): string | undefined {
  if (nodePortAddresses.kind === "all") return nodeAddress;
  return nodePortAddresses.addresses.find((address) => !address.startsWith("127.") && address !== "::1");
}

function packetTo(
  { family, protocol }: ServicePortGroup,
  { address: destination, port: dport }: Probe["frontend"],
  { address: source, inInterface }: Source,
): Packet {
  const packet = { family, protocol: protocol.toLowerCase(), source, destination, sport: 40_000, dport };
  return inInterface === undefined ? packet : { ...packet, inInterface };
}
