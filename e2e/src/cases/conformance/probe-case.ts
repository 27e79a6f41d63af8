import { familyOf, socketText } from "@fairlead/base";
import type { Ending, Probe } from "@fairlead/lab/peer/protocol";
import { type Lab, namespaceOf } from "@fairlead/lab/plain/lab";
import {
  type ConformanceCase,
  hosts,
  NODE_A,
  type Outcome,
  type OutcomeShares,
  packetFamily,
  SECOND_NODE_ADDRESS,
  waysOf,
  wayTo,
} from "@fairlead/testkit";
import { askSctp } from "./ask-sctp.ts";
import { probeSctp } from "./probe-sctp.ts";
import { answersPassBy, probeUnanswered } from "./probe-unanswered.ts";

/** An answer that was to come has time; that none comes where none is to come shows soon. */
const PATIENCE_MS = 60_000;
const SILENCE_MS = 400;

export interface ProbeOptions {
  /** How long to wait for answers that are expected. */
  readonly patienceMs?: number;
  /** Addresses that node-a has alongside its own. */
  readonly moreAddresses?: Iterable<string>;
  /** The kernel has SCTP sockets, and `serveSctp` has servers. Default: raw packets, read from connection tracking. */
  readonly sctpSockets?: boolean;
}

/** Sends real packets for a row and gives where they ended, with how often as the probability. */
export async function probeCase(
  lab: Lab,
  row: ConformanceCase,
  expected: Outcome,
  { patienceMs = PATIENCE_MS, moreAddresses = [], sctpSockets = false }: ProbeOptions = {},
): Promise<OutcomeShares> {
  const { packet } = row;
  if (answersPassBy(packet, expected)) return probeUnanswered(lab, packet, requestsFor(expected));
  if (packet.protocol === "SCTP" && !sctpSockets) return probeSctp(lab, packet, requestsFor(expected));
  const timeoutMs = expected.verdict === "drop" ? SILENCE_MS : patienceMs;
  const results = await endings(lab, row, expected, timeoutMs);
  const own = [...nodeAddresses, ...Array.from(moreAddresses, (address) => hostPart(socketText(address, 0)))];
  const ends = results.map((result) => endOf(row, result, own));
  const otherPort = mostlyWithOtherPort(ends);
  const masked = ({ way, differs }: End) => differs === "address" || (packet.from === NODE_A && otherPort.has(way));
  return waysOf(ends.map((end) => ({ way: wayTo(end.way, masked(end)), probability: 1 / ends.length })));
}

function endings(lab: Lab, row: ConformanceCase, expected: Outcome, timeoutMs: number): Promise<readonly Ending[]> {
  const { packet } = row;
  const { protocol } = packet;
  if (protocol === "SCTP") return askSctp(lab, packet, requestsFor(expected), timeoutMs);
  return lab.peer(packet.from).send({ ...requests(row, expected, protocol), timeoutMs });
}

function requests(
  { packet, sticky }: ConformanceCase,
  expected: Outcome,
  protocol: "TCP" | "UDP",
): Omit<Probe, "timeoutMs"> {
  return {
    protocol,
    to: packet.destination,
    port: packet.port,
    ...(packet.from !== NODE_A && { source: packet.source }),
    count: sticky ? 12 : requestsFor(expected),
    // One at a time: the second may look for the first one's affinity.
    parallel: sticky ? 1 : 8,
  };
}

/** As many as it takes so that one of the endpoints is missed once in ten million times. */
function requestsFor(expected: Outcome): number {
  const landings = expected.verdict === "endpoints" ? expected.landings : [];
  if (landings.length <= 1) return 3;
  const rarest = Math.min(...landings.map(({ probability }) => probability));
  return Math.ceil(Math.log(1e-7 / landings.length) / Math.log(1 - rarest));
}

interface End {
  readonly way: string;
  /**
   * How the sender that the server sees differs from the one that sent. Only the port may differ without masquerading:
   * two services with one endpoint meet with the same ports, and the kernel picks another for the second.
   */
  readonly differs: "nothing" | "port" | "address";
}

/**
 * The ways on which the node's own packets are masqueraded: they keep their address, and the port tells, in all but one
 * of some 30,000 requests. Without masquerading few have another port.
 */
function mostlyWithOtherPort(ends: readonly End[]): ReadonlySet<string> {
  const byWay = Map.groupBy(ends, ({ way }) => way);
  const mostly = [...byWay].filter(
    ([, those]) => those.filter(({ differs }) => differs === "port").length > those.length / 2,
  );
  return new Set(mostly.map(([way]) => way));
}

function endOf(row: ConformanceCase, result: Ending, own: readonly string[]): End {
  if (result.kind === "refused") return { way: "reject", differs: "nothing" };
  if (result.kind === "lost") return { way: "drop", differs: "nothing" };
  if (result.kind === "error") return { way: `error ${result.code}`, differs: "nothing" };
  const { destination, port } = row.packet;
  const local = arrival(row, result);
  const way = local === socketText(destination, port) ? "leave" : local;
  return { way: asNode(result, own) ? way : `${way} as ${result.remote}`, differs: difference(result) };
}

function difference({ remote, sender }: { remote: string; sender: string }): End["differs"] {
  if (remote === sender) return "nothing";
  return hostPart(remote) === hostPart(sender) ? "port" : "address";
}

/** Who is not the sender must be the node. */
function asNode({ remote, sender }: { remote: string; sender: string }, own: readonly string[]): boolean {
  const seen = hostPart(remote);
  return seen === hostPart(sender) || own.includes(seen);
}

function hostPart(socket: string): string {
  return socket.slice(0, socket.lastIndexOf(":"));
}

const nodeAddresses: readonly string[] = [NODE_A.addresses, SECOND_NODE_ADDRESS].flatMap(({ IPv4, IPv6 }) => [
  IPv4,
  `[${IPv6}]`,
]);

/** Where the request arrived. A UDP server knows its port only; who it is tells the address. */
function arrival({ packet }: ConformanceCase, { server, local }: { server: string; local: string }): string {
  if (!local.startsWith("*:")) return local;
  const port = Number(local.slice(2));
  const family = packetFamily(packet);
  const owner = hosts.find((host) => namespaceOf(host) === server);
  // What the sink answers was sent to no host of the lab: it is where every untranslated address ends.
  const address = server === "sink" ? packet.destination : (owner?.addresses[family] ?? server);
  return socketText(address, familyOf(address) === family ? port : packet.port);
}
