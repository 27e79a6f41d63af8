import type { IPFamily, Protocol } from "../family.ts";
import type { ConntrackFlow } from "./conntrack.ts";

/**
 * One line of `conntrack -L`: the protocol's name and number, seconds left, a state, then `src= dst= sport= dport=` of the
 * original direction and the same again of the reply, flags between them.
 *
 * @returns undefined for a line that is no entry with ports
 */
export function parseFlow(line: string, family: IPFamily, protocol: Protocol): ConntrackFlow | undefined {
  const [original, reply] = directions(line);
  if (original === undefined || reply === undefined) return undefined;
  return {
    family,
    protocol,
    originalDestination: original.destination,
    originalPort: original.destinationPort,
    replySource: reply.source,
    replyPort: reply.sourcePort,
  };
}

const DIRECTION = /src=(\S+) dst=(\S+) sport=(\d+) dport=(\d+)/g;

/** One direction of a connection as connection tracking knows it; canonical addresses. */
export interface Direction {
  readonly source: string;
  readonly destination: string;
  readonly sourcePort: number;
  readonly destinationPort: number;
}

export function directions(line: string): Direction[] {
  return Array.from(line.matchAll(DIRECTION), ([, source = "", destination = "", sport, dport]) => ({
    source,
    destination,
    sourcePort: Number(sport),
    destinationPort: Number(dport),
  }));
}
