import type { RuleSet } from "@fairlead/netfilter";
import { clientA, nodeA, nodeEnvironment, outside } from "@fairlead/testkit";
import { createTracer, type Outcome, type Packet } from "@fairlead/trace";
import { slotClusterIP } from "./slots.ts";

/** The packet goes its way as if there were no proxy. */
const UNSERVED = "unserved";

/** Where packets to every frontend that a slot can have end, by a name for the packet. */
export function whereabouts(ruleSet: RuleSet, slots: readonly number[]): ReadonlyMap<string, string> {
  const tracer = createTracer(ruleSet);
  const ends = new Map<string, string>();
  for (const slot of slots) {
    for (const packet of slotPackets(slot)) {
      const name = `${packet.protocol} ${packet.source} → ${packet.destination}:${packet.dport}`;
      ends.set(name, tracer.trace(packet, nodeEnvironment).map(endOf).sort().join(" | "));
    }
  }
  return ends;
}

function* slotPackets(slot: number): Generator<Packet> {
  const targets = [
    { destination: slotClusterIP(slot), dport: 80 },
    { destination: slotClusterIP(slot), dport: 81 },
    { destination: `192.0.2.${slot % 3}`, dport: 80 },
    { destination: `203.0.113.${slot}`, dport: 80 },
    { destination: nodeA.addresses.IPv4, dport: 30_000 + slot * 2 },
  ];
  for (const { addresses, interface: inInterface } of [clientA, nodeA, outside]) {
    for (const protocol of ["tcp", "udp"]) {
      for (const target of targets) {
        const packet: Packet = { family: "IPv4", protocol, source: addresses.IPv4, sport: 40_000, ...target };
        yield inInterface === undefined ? packet : { ...packet, inInterface };
      }
    }
  }
}

function endOf({ verdict, destination, masqueraded, probability, translated }: Outcome): string {
  if (verdict !== "accept") return verdict;
  if (!translated) return UNSERVED;
  const end = `${destination.address}:${destination.port}`;
  return `${end}${masqueraded ? " as the node" : ""} ${probability.toFixed(4)}`;
}

/**
 * Whether a packet's end is right between two states: as in one of them, or refused where one of them does not serve it.
 */
export function isEndBetween(end: string, before: string | undefined, after: string | undefined): boolean {
  if (end === before || end === after) return true;
  return (before === UNSERVED || after === UNSERVED) && (end === "drop" || end === "reject");
}
