import type { IPFamily } from "@fairlead/core";
import {
  addressOf,
  clientA,
  clientB,
  type Host,
  NODE_A,
  NODE_B,
  outside,
  ovnClient,
  SECOND_NODE_ADDRESS,
  stranger,
  webA1,
  webA2,
  webB1,
} from "@fairlead/testkit";
import fc from "fast-check";

/** A real packet: the first of a connection, whose way leads through node-a. */
export interface SentPacket {
  readonly from: Host;
  readonly family: IPFamily;
  readonly protocol: "TCP" | "UDP";
  /** Where the sender sends from; the kernel chooses by itself for node-a, and chooses this. */
  readonly source: string;
  readonly destination: string;
  readonly port: number;
}

/** Every host listens on these: that a port is closed is not to be taken for a rule's refusal. */
export const PORTS = [53, 80, 8080, 9090] as const;

/** Addresses of no host, which node-a gets to see whoever sends to them. */
export const FRONTENDS = {
  IPv4: ["10.96.7.1", "10.96.7.2", "203.0.113.7", "192.0.2.7"],
  IPv6: ["fd00:10:96::71", "fd00:10:96::72", "fd00:203::7", "fd00:192::7"],
} as const;

/** On node-a, and elsewhere. */
export const senders = {
  here: [NODE_A, clientA, webA1, ovnClient],
  elsewhere: [outside, stranger, clientB, NODE_B],
} as const;

/** @param family of all of its addresses */
export function sentPackets(family: IPFamily): fc.Arbitrary<SentPacket> {
  const everywhere = destinationsOf(family, [webA1, webA2]);
  const here = fc
    .constantFrom(...senders.here)
    .chain((from) => packetsFrom(from, family, [...everywhere, webB1.addresses[family]]));
  const elsewhere = fc.constantFrom(...senders.elsewhere).chain((from) => packetsFrom(from, family, everywhere));
  return fc.oneof(here, elsewhere);
}

function destinationsOf(family: IPFamily, pods: readonly Host[]): readonly string[] {
  const node = [NODE_A.addresses[family], SECOND_NODE_ADDRESS[family]];
  return [...FRONTENDS[family], ...node, ...pods.map(({ addresses }) => addresses[family])];
}

function packetsFrom(from: Host, family: IPFamily, destinations: readonly string[]): fc.Arbitrary<SentPacket> {
  return fc
    .record({
      from: fc.constant(from),
      family: fc.constant(family),
      // A datagram that its own host refuses and one that it drops are one error to who sent it.
      protocol: from === NODE_A ? fc.constant("TCP") : fc.constantFrom("TCP", "UDP"),
      destination: fc.constantFrom(
        ...destinations.filter((address) => from === NODE_A || address !== from.addresses[family]),
      ),
      port: fc.constantFrom(...PORTS),
    })
    .map((packet) => ({ ...packet, source: sourceOf(from, packet.destination, family) }));
}

/** What the host sends to an address of its own it sends from there. */
function sourceOf(from: Host, destination: string, family: IPFamily): string {
  const own = from === NODE_A && destination === SECOND_NODE_ADDRESS[family];
  return own ? destination : addressOf(from, family);
}
