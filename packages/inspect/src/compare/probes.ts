/** Packets to a service port, from a source of each class. */

import { addressRange, bracketed, inAnyOf, isLoopback, prefixLengthOf, wordsText } from "@fairlead/base";
import type {
  AllowedSources,
  Frontend,
  IPFamily,
  LocalTrafficDetector,
  NodePlan,
  ServicePortGroup,
  SourceClass,
} from "@fairlead/core";
import type { Packet } from "@fairlead/trace";

/** The first packet of a connection to a service, of a kind that rules may distinguish from others. */
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

/**
 * Packets from the first pod on this node, which may come to itself.
 *
 * @param own the node's addresses: what a pod in its network sends does not come in
 */
export function* endpointProbesOf(
  group: ServicePortGroup,
  node: NodePlan,
  nodeAddress: string | undefined,
  own: ReadonlySet<string>,
): Generator<Probe, void, void> {
  const endpoint = group.cluster.find(({ local, address }) => local && !own.has(address));
  if (endpoint === undefined) return;
  const source: Source = { class: "pod", address: endpoint.address, inInterface: podInterface(node.detector) };
  yield* probesFrom(group, node, nodeAddress, () => [source]);
}

/** A sender of packets: an address that stands for all of a class. */
export interface Source {
  readonly class: SourceClass;
  readonly address: string;
  /** Absent: this node makes the packet. */
  readonly inInterface?: string;
}

/** The node's side toward others, where nothing says what it is called. */
export const OUTER_INTERFACE = "eth0";

/** Addresses for documentation (RFC 5737, RFC 3849), never pods. */
const OUTSIDE: Readonly<Record<IPFamily, readonly string[]>> = {
  IPv4: ["198.51.100.7", "203.0.113.7", "192.0.2.7"],
  IPv6: ["2001:db8:51::7", "2001:db8:113::7"],
};

/** An address that is no pod's of these CIDRs; undefined: they hold all that are for documentation. */
export function outsideAddress(family: IPFamily, pods: readonly string[] = []): string | undefined {
  const isPod = inAnyOf(pods);
  return OUTSIDE[family].find((address) => !isPod(address));
}

interface SourceFacts {
  readonly family: IPFamily;
  readonly detector: LocalTrafficDetector;
  /** The node's own address; absent: packets of the node are left out. */
  readonly nodeAddress?: string | undefined;
}

/** One source of each class; those that cannot be distinguished from others are left out. */
export function sourcesOf({ family, detector, nodeAddress }: SourceFacts): readonly Source[] {
  const pods = detector.kind === "cidrs" ? detector.cidrs : [];
  const outside = outsideAddress(family, pods);
  return [
    ...podSource(detector, family),
    ...(nodeAddress === undefined ? [] : [{ class: "node", address: nodeAddress } as const]),
    ...(outside === undefined ? [] : [{ class: "outside", address: outside, inInterface: OUTER_INTERFACE } as const]),
  ];
}

/** Whether a sender is served by another network at a frontend. */
export function isExcluded({ excludedClients }: Frontend, source: Source): boolean {
  return excludedClients !== undefined && source.class !== "node" && inAnyOf(excludedClients)(source.address);
}

/** The last but one address of a CIDR: pods are numbered from below. */
export function addressIn(cidr: string): string {
  const { words, masks } = addressRange(cidr);
  const last = words.map((word, at) => (word | ~(masks[at] ?? 0)) >>> 0);
  const hostBits = words.length * 32 - prefixLengthOf(cidr);
  return wordsText(hostBits > 1 ? last.with(-1, (last.at(-1) ?? 0) - 1) : last);
}

/** Whether a frontend that admits only some clients lets an address in. */
export function lets(sources: AllowedSources | undefined, address: string): boolean {
  return sources === undefined || sources.addresses.includes(address) || inAnyOf(sources.ranges)(address);
}

/**
 * Every kind of packet that distinguishes one treatment of a group from another: from each class of sources, from an
 * address of each source range, and from the endpoints of this node, which may come to themselves.
 *
 * @param nodeAddress where node ports are asked for, and the source of the node's own packets; absent: neither is
 */
export function* allProbesOf(
  group: ServicePortGroup,
  node: NodePlan,
  nodeAddress: string | undefined,
): Generator<Probe, void, void> {
  yield* probesOf(group, node, nodeAddress);
  const hairpins = hairpinSources(group, node, nodeAddress);
  yield* probesFrom(group, node, nodeAddress, (frontend) => [...hairpins, ...allowedSources(frontend, node)]);
}

/** `tcp 198.51.100.7 → 10.96.0.80:80 (outside)` */
export function packetText({ packet: { protocol, source, destination, dport }, source: sender }: Probe): string {
  return `${protocol} ${source} → ${bracketed(destination)}:${dport} (${sender.class})`;
}

/** Packets to every frontend of a group from the sources that are given for it. */
function* probesFrom(
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

/** One of the clients that another network serves at a frontend; none where there are none. */
function excludedSources({ excludedClients = [] }: Frontend): readonly Source[] {
  return excludedClients
    .slice(0, 1)
    .map((cidr) => ({ class: "outside", address: addressIn(cidr), inInterface: OUTER_INTERFACE }));
}

function podSource(detector: LocalTrafficDetector, family: IPFamily): readonly Source[] {
  if (detector.kind === "none") return [];
  const nowhere = OUTSIDE[family].at(-1) ?? "";
  const addresses = detector.kind === "cidrs" ? detector.cidrs.slice(0, 1).map(addressIn) : [nowhere];
  return addresses.map((address) => ({ class: "pod", address, inInterface: podInterface(detector) }));
}

/** Where packets of this node's pods come in; any, where interfaces do not distinguish them. */
function podInterface(detector: LocalTrafficDetector): string {
  if (detector.kind === "bridge") return detector.interface;
  return detector.kind === "interface-prefix" ? `${detector.prefix}0` : "pod0";
}

/** Hairpins cost a packet for each frontend and endpoint: a node runs some hundred pods at most. */
const MOST_HAIRPINS = 16;

function hairpinSources(group: ServicePortGroup, node: NodePlan, nodeAddress: string | undefined): readonly Source[] {
  const { detector } = node;
  const pods = detector.kind === "cidrs" ? inAnyOf(detector.cidrs) : () => detector.kind !== "none";
  const here = [...group.local, ...group.cluster].filter(({ local }) => local);
  const addresses = [...new Set(here.map(({ address }) => address))];
  return addresses
    .filter((address) => address !== nodeAddress && !isLoopback(address))
    .slice(0, MOST_HAIRPINS)
    .map((address) => ({ class: pods(address) ? "pod" : "outside", address, inInterface: podInterface(detector) }));
}

/** A sender of each range that is neither a pod of this node nor on it. */
function allowedSources({ gate }: Frontend, { detector }: NodePlan): readonly Source[] {
  const isPod = inAnyOf(detector.kind === "cidrs" ? detector.cidrs : []);
  const wide = (gate?.ranges ?? []).filter((range) => prefixLengthOf(range) > 0);
  return wide
    .map(addressIn)
    .filter((address) => !isPod(address))
    .map((address) => ({ class: "outside", address, inInterface: OUTER_INTERFACE }));
}
