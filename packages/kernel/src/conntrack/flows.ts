/** What an entry of connection tracking is, and how the text of the conntrack tool gives it. */

import { parseAddress } from "@fairlead/base";
import type { IPFamily, Protocol } from "../family.ts";

/** What is read of a connection tracking entry: the destination that the client called, and the one that answers. */
export interface ConntrackFlow {
  /** The family of its addresses. */
  readonly family: IPFamily;
  /** The transport protocol. */
  readonly protocol: Protocol;
  /** Where the client's packets went, before any translation; canonical address. */
  readonly originalDestination: string;
  /** The port that the client called. */
  readonly originalPort: number;
  /** The client, before any translation; canonical. Absent where only the tool `conntrack` reads and deletes. */
  readonly originalSource?: string;
  /** Who answers: the endpoint after DNAT. Canonical address. */
  readonly replySource: string;
  /** The port that answers. */
  readonly replyPort: number;
}

/** Picks, of the entries that it is given, those to delete: the same values, not copies of them. */
export type Choose = (flows: readonly ConntrackFlow[]) => Iterable<ConntrackFlow>;

/**
 * The connection tracking table of this network namespace, zone 0 of it: zones are how other networks (OVN) track the
 * same addresses for themselves, and their entries are neither read nor deleted.
 */
export interface Conntrack {
  /**
   * Reads the entries of a family and protocol once, and deletes those that `choose` picks. Many clients of one service
   * give many equal flows. Entries that are gone by then are no error.
   *
   * @param choose is called with a batch at a time; what it is given is read anew for each sweep
   * @returns how many entries were picked
   * @throws CommandError when the tool is missing, not permitted or fails; NetlinkError when the kernel refuses
   */
  sweep(family: IPFamily, protocol: Protocol, choose: Choose): Promise<number>;
}

/** Bytes and packets of one direction. */
export interface Volume {
  /** Bytes, headers of IP included. */
  readonly bytes: number;
  /** Packets. */
  readonly packets: number;
}

/** An entry of connection tracking in zone 0, both directions with their addresses and ports. */
export interface Connection {
  /** The family of its addresses. */
  readonly family: IPFamily;
  /** The transport protocol. */
  readonly protocol: Protocol;
  /** As the client sent its first packet. */
  readonly original: Direction;
  /** Its source answers, its destination is where the answer goes: the client, or the address that masquerades it. */
  readonly reply: Direction;
  /** Of TCP and SCTP, as conntrack calls it: `ESTABLISHED`. */
  readonly state?: string;
  /** Whether anything was answered. */
  readonly replied: boolean;
  /** It is in a flowtable: state and expiry are not reported, and its packets meet no rules. */
  readonly offloaded?: true;
  /** Seconds until it is forgotten unless another packet comes. */
  readonly expires?: number;
  /** Both only where accounting is on (net.netfilter.nf_conntrack_acct). */
  readonly sent?: Volume;
  /** What the client got. */
  readonly received?: Volume;
}

/** lost: the kernel had more to report than was read in time, or reports no single ones. */
export type ConnectionEvent =
  | { readonly kind: "new" | "update" | "gone"; readonly connection: Connection }
  | { readonly kind: "lost" };

/** The connections that this network namespace tracks, in zone 0: TCP, UDP and SCTP of both families. Only reads. */
export interface Tracking {
  /**
   * All of them as they are read.
   *
   * @throws NetlinkError, or CommandError, when they may not be read
   */
  list(): AsyncGenerator<Connection, void, void>;
  /**
   * What becomes of connections from when it resolves until the signal aborts. The kernel only reports while something
   * listens: what is given has to be read to its end, or until the signal aborts.
   *
   * @throws NetlinkError, or CommandError with the first event, when it may not be heard
   */
  follow(signal: AbortSignal): Promise<AsyncIterable<ConnectionEvent>>;
}

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

/** What stands before the addresses: protocol and number, seconds left but in [DESTROY], a state but of UDP. */
const HEAD = /^(?:ipv[46] +\d+ +)?([a-z]+) +\d+(?: +(\d+))?(?: +([A-Z][A-Z_0-9]*))? +src=/;

const PROTOCOLS: ReadonlyMap<string, Protocol> = new Map([
  ["tcp", "TCP"],
  ["udp", "UDP"],
  ["sctp", "SCTP"],
]);

const COUNTERS = /packets=(\d+) bytes=(\d+)/g;

/**
 * One line of `conntrack -L`.
 *
 * @returns undefined for a line that is no entry with ports, or one of another zone than 0
 */
export function parseConnection(line: string, family: IPFamily): Connection | undefined {
  const [, name = "", expires, state] = HEAD.exec(line.trim()) ?? [];
  const protocol = PROTOCOLS.get(name);
  const [original, reply] = directions(line).map(canonical);
  if (protocol === undefined || original === undefined || reply === undefined) return undefined;
  const [sent, received] = Array.from(
    line.matchAll(COUNTERS),
    ([, packets, bytes]): Volume => ({ bytes: Number(bytes), packets: Number(packets) }),
  );
  return {
    family,
    protocol,
    original,
    reply,
    ...(state !== undefined && { state }),
    replied: !line.includes("[UNREPLIED]"),
    ...(/\[(?:HW_)?OFFLOAD\]/.test(line) && { offloaded: true }),
    ...(expires !== undefined && { expires: Number(expires) }),
    ...(sent && { sent }),
    ...(received && { received }),
  };
}

const KINDS = { NEW: "new", UPDATE: "update", DESTROY: "gone" } as const;

/** One line of `conntrack -E`; undefined as of `parseConnection`. */
export function parseConnectionEvent(line: string, family: IPFamily): ConnectionEvent | undefined {
  const [whole, word] = /^\s*\[(NEW|UPDATE|DESTROY)\]\s+/.exec(line) ?? [];
  const kind = Object.entries(KINDS).find(([name]) => name === word)?.[1];
  const connection = whole === undefined ? undefined : parseConnection(line.slice(whole.length), family);
  return kind === undefined || connection === undefined ? undefined : { kind, connection };
}

const DIRECTION = /src=(\S+) dst=(\S+) sport=(\d+) dport=(\d+)/g;

/** `zone=5` of both directions, `zone-orig=5` or `zone-reply=5` of one; zone 0 is not printed. */
const OTHER_ZONE = / zone(?:-orig|-reply)?=(?!0(?: |$))/;

/**
 * Both directions of an entry; none of an entry in a conntrack zone other than 0: those are other networks' (OVN has
 * one for each of its routers and ports), which track the same addresses for themselves.
 */
function directions(line: string): Direction[] {
  if (OTHER_ZONE.test(line)) return [];
  return Array.from(line.matchAll(DIRECTION), ([, source = "", destination = "", sport, dport]) => ({
    source,
    destination,
    sourcePort: Number(sport),
    destinationPort: Number(dport),
  }));
}

/** @returns undefined where an address is not one */
function canonical(direction: Direction): Direction | undefined {
  const [source, destination] = [parseAddress(direction.source), parseAddress(direction.destination)];
  return source && destination && { ...direction, source: source.text, destination: destination.text };
}
