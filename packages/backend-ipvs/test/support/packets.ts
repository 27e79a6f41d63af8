import { clientA, nodeA, nodeEnvironment, outside } from "@fairlead/testkit";
import { createTracer, type Environment, type Outcome, type Packet, packetSet } from "@fairlead/trace";
import { DEVICE } from "../../src/index.ts";
import type { FakeNode } from "./fake-node.ts";
import { slotClusterIP } from "./slots.ts";

/** The packet goes its way as if there were no proxy. */
const UNSERVED = "unserved";

/** Nobody answers: the virtual server is empty, or a rule refuses. */
const REFUSED = "refused";

export type Ends = ReadonlyMap<string, ReadonlySet<string>>;

/** Where packets to every frontend that a slot can have may end, by a name for the packet. */
export function whereabouts(node: FakeNode, slots: readonly number[]): Ends {
  const tracer = createTracer(node.rules.IPv4.ruleSet());
  const environment = environmentOf(node);
  const ends = new Map<string, ReadonlySet<string>>();
  for (const slot of slots) {
    for (const packet of slotPackets(slot)) {
      const name = `${packet.protocol} ${packet.source} → ${packet.destination}:${packet.dport}`;
      ends.set(name, new Set(tracer.trace(packet, environment).map(endOf)));
    }
  }
  return ends;
}

function environmentOf(node: FakeNode): Environment {
  const bound = node.links.device(DEVICE) ?? [];
  return {
    ...nodeEnvironment,
    localAddresses: [...(nodeEnvironment.localAddresses ?? []), ...bound],
    sets: new Map(node.sets.sets().map(({ name, type, members }) => [name, packetSet(type, members)])),
    ipvs: { servers: node.servers.servers(), conntrack: true, expireQuiescentTemplate: true },
  };
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

function endOf({ verdict, destination, masqueraded, translated }: Outcome): string {
  if (verdict !== "accept") return REFUSED;
  if (!translated) return UNSERVED;
  return `${destination.address}:${destination.port}${masqueraded ? " as the node" : ""}`;
}

/**
 * The packets that may end where they should neither before nor after: what both serve has to be served between them, by
 * somebody of whom one of them knows. A server can't be changed in one step, so its destinations may be of both.
 */
export function wrongEnds(now: Ends, before: Ends, after: Ends): string[] {
  return [...now].flatMap(([packet, ends]) => {
    const old = before.get(packet) ?? new Set();
    const wanted = after.get(packet) ?? new Set();
    const known = [...old, ...wanted];
    const refusals = isServed(old) && isServed(wanted) ? [] : [UNSERVED, REFUSED];
    // To be masqueraded is to be served, if without the client's address; not to be where it was asked for is not.
    const right = new Set([...known, ...known.map((end) => `${end} as the node`), ...refusals]);
    const wrong = [...ends].filter((end) => !right.has(end));
    if (wrong.length === 0) return [];
    return [`${packet}: ${wrong.join(", ")}; before: ${[...old].join(", ")}; wanted: ${[...wanted].join(", ")}`];
  });
}

function isServed(ends: ReadonlySet<string>): boolean {
  return ends.size > 0 && !ends.has(UNSERVED) && !ends.has(REFUSED);
}
