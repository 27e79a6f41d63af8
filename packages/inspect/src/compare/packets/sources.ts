import { addressRange, inAnyOf, prefixLengthOf, wordsText } from "@fairlead/base";
import type { AllowedSources, Frontend, IPFamily, LocalTrafficDetector, SourceClass } from "@fairlead/core";

/** Somebody who sends packets: an address that stands for all of a class. */
export interface Source {
  readonly class: SourceClass;
  readonly address: string;
  /** Absent: this node makes the packet. */
  readonly inInterface?: string;
}

/** Addresses for documentation (RFC 5737, RFC 3849), never pods. */
const OUTSIDE: Readonly<Record<IPFamily, readonly string[]>> = {
  IPv4: ["198.51.100.7", "203.0.113.7", "192.0.2.7"],
  IPv6: ["2001:db8:51::7", "2001:db8:113::7"],
};

/** The node's side toward others, where nothing says what it is called. */
export const OUTER_INTERFACE = "eth0";

export interface SourceFacts {
  readonly family: IPFamily;
  readonly detector: LocalTrafficDetector;
  /** The node's own address; absent: packets of the node are left out. */
  readonly nodeAddress?: string | undefined;
}

/** An address that is no pod's of these CIDRs; undefined: they hold all that are for documentation. */
export function outsideAddress(family: IPFamily, pods: readonly string[] = []): string | undefined {
  const isPod = inAnyOf(pods);
  return OUTSIDE[family].find((address) => !isPod(address));
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

/** One of the clients that another network serves at a frontend; none where there are none. */
export function excludedSources({ excludedClients = [] }: Frontend): readonly Source[] {
  return excludedClients
    .slice(0, 1)
    .map((cidr) => ({ class: "outside", address: addressIn(cidr), inInterface: OUTER_INTERFACE }));
}

/** Whether a sender is served by another network at a frontend. */
export function isExcluded({ excludedClients }: Frontend, source: Source): boolean {
  return excludedClients !== undefined && source.class !== "node" && inAnyOf(excludedClients)(source.address);
}

function podSource(detector: LocalTrafficDetector, family: IPFamily): readonly Source[] {
  if (detector.kind === "none") return [];
  const nowhere = OUTSIDE[family].at(-1) ?? "";
  const addresses = detector.kind === "cidrs" ? detector.cidrs.slice(0, 1).map(addressIn) : [nowhere];
  return addresses.map((address) => ({ class: "pod", address, inInterface: podInterface(detector) }));
}

/** Where packets of this node's pods come in; any, where interfaces do not tell them. */
export function podInterface(detector: LocalTrafficDetector): string {
  if (detector.kind === "bridge") return detector.interface;
  return detector.kind === "interface-prefix" ? `${detector.prefix}0` : "pod0";
}

/** The last but one address of a CIDR: pods are numbered from below. */
export function addressIn(cidr: string): string {
  const { words, masks } = addressRange(cidr);
  const last = words.map((word, at) => (word | ~(masks[at] ?? 0)) >>> 0);
  const hostBits = words.length * 32 - prefixLengthOf(cidr);
  return wordsText(hostBits > 1 ? last.with(-1, (last.at(-1) ?? 0) - 1) : last);
}

/** Whether a frontend that not everybody may use lets an address in. */
export function lets(sources: AllowedSources | undefined, address: string): boolean {
  return sources === undefined || sources.addresses.includes(address) || inAnyOf(sources.ranges)(address);
}
