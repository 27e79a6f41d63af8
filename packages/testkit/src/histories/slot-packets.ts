import type { RuleSet } from "@fairlead/netfilter";
import { createTracer, type Environment, type Outcome, type Packet, type Rules } from "@fairlead/trace";
import { clientA, NODE_A, outside } from "../addresses/hosts.ts";
import { nodeEnvironment } from "../run/traced.ts";
import { externalAddress, slotClusterIP } from "./slots.ts";

/** Where packets to every frontend that a slot can have end, by a name for the packet. */
export function traceSlots(
  ruleSet: RuleSet | Rules,
  slots: readonly number[],
  environment: Environment = nodeEnvironment,
): ReadonlyMap<string, readonly Outcome[]> {
  const tracer = createTracer(ruleSet);
  const packets = slots.flatMap((slot) => [...slotPackets(slot)]);
  return new Map(packets.map((packet) => [nameOf(packet), tracer.trace(packet, environment)]));
}

function nameOf({ protocol, source, destination, dport }: Packet): string {
  return `${protocol} ${source} → ${destination}:${dport}`;
}

function* slotPackets(slot: number): Generator<Packet> {
  const targets = [
    { destination: slotClusterIP(slot), dport: 80 },
    { destination: slotClusterIP(slot), dport: 81 },
    { destination: externalAddress(slot), dport: 80 },
    { destination: `203.0.113.${slot}`, dport: 80 },
    { destination: NODE_A.addresses.IPv4, dport: 30_000 + slot * 2 },
  ];
  for (const { addresses, interface: inInterface } of [clientA, NODE_A, outside]) {
    for (const protocol of ["tcp", "udp"]) {
      for (const target of targets) {
        const packet: Packet = { family: "IPv4", protocol, source: addresses.IPv4, sport: 40_000, ...target };
        yield inInterface === undefined ? packet : { ...packet, inInterface };
      }
    }
  }
}
