import { bracketed } from "@fairlead/base";
import type { RuleSet } from "@fairlead/netfilter";
import { createTracer, type Environment, type Exploration, landings, type Packet, type Tracer } from "@fairlead/trace";
import type { Finding } from "./finding.ts";

/** A packet to a service. */
export interface Probe {
  /** `namespace/name:port` */
  readonly service: string;
  readonly packet: Packet;
}

/** What a packet meets on a node. */
export interface Kernel {
  readonly rules: RuleSet;
  readonly environment: Environment;
}

/**
 * Sends packets through what is expected and through what is there, and gives those that end elsewhere, or with another
 * probability. What cannot be decided there is no finding where all ways of it end the same.
 */
export function compareTraffic(expected: Kernel, actual: Kernel, probes: Iterable<Probe>): readonly Finding[] {
  const [wanted, found] = [endsIn(expected), endsIn(actual)];
  return Array.from(probes).flatMap(({ service, packet }): Finding[] => {
    const [want, have] = [wanted(packet), found(packet)];
    if (want === have) return [];
    return [{ kind: "different", service, where: `traffic ${packetText(packet)}`, what: `${have}, expected ${want}` }];
  });
}

function endsIn({ rules, environment }: Kernel): (packet: Packet) => string {
  const tracer = createTracer(rules);
  return (packet) => endText(explored(tracer, packet, environment));
}

function explored(tracer: Tracer, packet: Packet, environment: Environment): Exploration {
  const own = packet.inInterface === undefined && isLocal(packet.destination, environment);
  return tracer.explore(own ? { ...packet, source: packet.destination } : packet, environment);
}

function isLocal(address: string, { localAddresses = [] }: Environment): boolean {
  for (const own of localAddresses) if (own === address) return true;
  return false;
}

/** `10.144.1.5:8080 masqueraded 50 %, …`, the same for the same ends. */
function endText({ outcomes, undecided }: Exploration): string {
  const [first] = undecided;
  if (first !== undefined) return `cannot tell: ${first.problem.message}`;
  const total = outcomes.reduce((sum, { probability }) => sum + probability, 0);
  const ends = landings(outcomes).map(({ verdict, destination, masqueraded, probability }) => {
    const end = verdict === "accept" ? `${destination}${masqueraded ? " masqueraded" : ""}` : verdict;
    return `${end} ${Number(((probability / total) * 100).toFixed(3))} %`;
  });
  return ends.sort().join(", ");
}

function packetText({ protocol, source, destination, dport }: Packet): string {
  const to = bracketed(destination);
  return `${protocol} ${source} → ${to}${dport === undefined ? "" : `:${dport}`}`;
}
