import { canonicalCIDR } from "@fairlead/netfilter";
import type { IPFamily, Protocol } from "../family.ts";
import type { Connection, ConnectionEvent, Volume } from "./connection.ts";
import { type Direction, directions } from "./parse-flow.ts";

/** What stands before the addresses: protocol and number, seconds left but in [DESTROY], a state but of UDP. */
const HEAD = /^(?:ipv[46] +\d+ +)?([a-z]+) +\d+(?: +(\d+))?(?: +([A-Z][A-Z_0-9]*))? +src=/;
const COUNTERS = /packets=(\d+) bytes=(\d+)/g;
const PROTOCOLS: ReadonlyMap<string, Protocol> = new Map([
  ["tcp", "TCP"],
  ["udp", "UDP"],
  ["sctp", "SCTP"],
]);

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

function canonical(direction: Direction): Direction {
  const address = (text: string) => canonicalCIDR(text).split("/")[0] ?? text;
  return { ...direction, source: address(direction.source), destination: address(direction.destination) };
}
