import type { IPFamily, Protocol } from "../family.ts";
import type { ConntrackFlow } from "./conntrack.ts";

/**
 * One line of `conntrack -L`: the protocol's name and number, seconds left, a state, then `src= dst= sport= dport=` of
 * the original direction and the same again of the reply, flags between them.
 *
 * @returns undefined for a line that is no entry with ports, or one of another zone than 0
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
  /** Who sends in this direction. */
  readonly source: string;
  /** Where it sends to. */
  readonly destination: string;
  /** 1 to 65535. */
  readonly sourcePort: number;
  /** 1 to 65535. */
  readonly destinationPort: number;
}

/** `zone=5` of both directions, `zone-orig=5` or `zone-reply=5` of one; zone 0 is not printed. */
const OTHER_ZONE = / zone(?:-orig|-reply)?=(?!0(?: |$))/;

/**
 * Both directions of an entry; none of an entry in a conntrack zone other than 0: those are other networks' (OVN has
 * one for each of its routers and ports), which track the same addresses for themselves.
 */
export function directions(line: string): Direction[] {
  if (OTHER_ZONE.test(line)) return [];
  return Array.from(line.matchAll(DIRECTION), ([, source = "", destination = "", sport, dport]) => ({
    source,
    destination,
    sourcePort: Number(sport),
    destinationPort: Number(dport),
  }));
}
