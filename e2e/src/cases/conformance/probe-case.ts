/** What a packet of the conformance table meets on a real kernel. */

import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { familyOf, socketText } from "@fairlead/base";
import type { Ending, Probe } from "@fairlead/lab/peer/protocol";
import { type Lab, namespaceOf } from "@fairlead/lab/plain/lab";
import {
  type CasePacket,
  type ConformanceCase,
  differences,
  expectedWays,
  hosts,
  NODE_A,
  type Outcome,
  type OutcomeShares,
  packetFamily,
  SECOND_NODE_ADDRESS,
  waysOf,
  wayTo,
} from "@fairlead/testkit";
import { execa } from "execa";
import { connectionsOf, isMasqueraded } from "../tracked.ts";

const SERVER = fileURLToPath(new URL("sctp-server.pl", import.meta.url));

/**
 * Servers in these namespaces, as long as the returned object is not disposed of. The kernel must have SCTP sockets.
 */
export async function serveSctp(
  lab: Lab,
  names: readonly string[],
  ports: readonly number[],
): Promise<AsyncDisposable> {
  const started = new AsyncDisposableStack();
  for (const name of names) {
    const [program = "nsenter", ...prefix] = lab.namespace(name).argvPrefix;
    const server = execa(program, [...prefix, "perl", SERVER, name, ...ports.map(String)], {
      stdin: "pipe",
      buffer: { stdout: false, stderr: true },
      reject: false,
    });
    started.defer(async () => {
      server.stdin.end();
      await server;
    });
    const listens = new Promise((resolve) => server.stdout.once("data", resolve));
    const ended = server.then(({ stderr }) => {
      throw new Error(`the SCTP server of ${name} ended: ${stderr}`);
    });
    await Promise.race([listens, ended]);
    ended.catch(() => {});
  }
  return started;
}

interface ProbeOptions {
  /** How long to wait for answers that are expected. */
  readonly patienceMs?: number;
  /** Addresses that node-a has alongside its own. */
  readonly moreAddresses?: Iterable<string>;
  /** The kernel has SCTP sockets, and `serveSctp` has servers. Default: raw packets, read from connection tracking. */
  readonly sctpSockets?: boolean;
}

/** What real packets did that they should not, or never did that they should; empty where they did as expected. */
export async function strays(
  lab: Lab,
  row: ConformanceCase,
  expected: Outcome,
  options?: ProbeOptions,
): Promise<readonly string[]> {
  const { observed, slowestMs } = await probeCase(lab, row, expected, options);
  const differ = differences(expectedWays(expected), observed, { probabilities: false });
  // A SYN that is lost on the way is drawn anew a second later: the time separates that from a rule that never draws.
  const seen = `${requestsFor(expected)} requests, the slowest in ${slowestMs} ms: ${sharesText(observed)}`;
  if (!row.sticky) return differ.map((text) => `${text} (${seen})`);
  const wrong = differ.filter((text) => text.startsWith("went"));
  return observed.size === 1 ? wrong : [...wrong, `did not stay with one endpoint: ${[...observed.keys()].join(", ")}`];
}

/** What is to come has time; that nothing comes where nothing is to come shows soon. */
const PATIENCE_MS = 60_000;
const SILENCE_MS = 400;

interface Probed {
  readonly observed: OutcomeShares;
  /** 0: not measured. */
  readonly slowestMs: number;
}

/** Sends real packets for a row and gives where they ended, with how often as the probability. */
async function probeCase(
  lab: Lab,
  row: ConformanceCase,
  expected: Outcome,
  { patienceMs = PATIENCE_MS, moreAddresses = [], sctpSockets = false }: ProbeOptions = {},
): Promise<Probed> {
  const { packet } = row;
  const tracked = async (read: () => Promise<OutcomeShares>) => ({
    observed: await untilAsExpected(read, expected, patienceMs),
    slowestMs: 0,
  });
  if (answersPassBy(packet, expected)) return tracked(await sendUnanswered(lab, packet, requestsFor(expected)));
  if (packet.protocol === "SCTP" && !sctpSockets) return tracked(await sendSctp(lab, packet, expected, patienceMs));
  const timeoutMs = expected.verdict === "drop" ? SILENCE_MS : patienceMs;
  const results = await endings(lab, row, expected, timeoutMs);
  const own = [...nodeAddresses, ...Array.from(moreAddresses, (address) => hostPart(socketText(address, 0)))];
  const ends = results.map((result) => endOf(row, result, own));
  const otherPort = mostlyWithOtherPort(ends);
  const masked = ({ way, differs }: End) => differs === "address" || (packet.from === NODE_A && otherPort.has(way));
  return {
    observed: sharesOf(ends.map((end) => wayTo(end.way, masked(end)))),
    slowestMs: Math.round(Math.max(0, ...results.map(({ ms = 0 }) => ms))),
  };
}

/** Reads until what is there is what was expected: what a sender gave to the kernel may not have passed node-a yet. */
async function untilAsExpected(
  read: () => Promise<OutcomeShares>,
  expected: Outcome,
  patienceMs: number,
): Promise<OutcomeShares> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const observed = await read();
    const differ = differences(expectedWays(expected), observed, { probabilities: false });
    if (differ.length === 0 || performance.now() > deadline) return observed;
    await sleep(SILENCE_MS / 4);
  }
}

type Timed = Ending & { readonly ms?: number };

function endings(lab: Lab, row: ConformanceCase, expected: Outcome, timeoutMs: number): Promise<readonly Timed[]> {
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

function sharesText(observed: OutcomeShares): string {
  return Array.from(observed, ([way, share]) => `${Math.round(share * 100)} % to ${way}`).join(", ");
}

/** As many as it takes so that one of the endpoints is missed once in ten million times. */
function requestsFor(expected: Outcome): number {
  const { landings, refused } = expected.verdict === "endpoints" ? expected : { landings: [] };
  const chances = [...landings.map(({ probability }) => probability), ...(refused === undefined ? [] : [refused])];
  if (chances.length <= 1) return 3;
  return Math.ceil(Math.log(1e-7 / chances.length) / Math.log(1 - Math.min(...chances)));
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
 * The ways on which the node's own packets are masqueraded: they keep their address, and have another port in all but
 * one of some 30,000 requests. Without masquerading few have another port.
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

/** A source other than the sender must be the node. */
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

/** Where the request arrived. A UDP server knows its port only; its name gives the address. */
function arrival({ packet }: ConformanceCase, { server, local }: { server: string; local: string }): string {
  if (!local.startsWith("*:")) return local;
  const port = Number(local.slice(2));
  const family = packetFamily(packet);
  const owner = hosts.find((host) => namespaceOf(host) === server);
  // What the sink answers was sent to no host of the lab: it is where every untranslated address ends.
  const address = server === "sink" ? packet.destination : (owner?.addresses[family] ?? server);
  return socketText(address, familyOf(address) === family ? port : packet.port);
}

const SCRIPT = fileURLToPath(new URL("sctp-init.pl", import.meta.url));

/** Sends raw INIT packets; reads from the node's connection tracking how they were translated. */
async function sendSctp(
  lab: Lab,
  packet: CasePacket,
  expected: Outcome,
  patienceMs: number,
): Promise<() => Promise<OutcomeShares>> {
  const { from, source, destination, port } = packet;
  const count = requestsFor(expected);
  const limits = [refusalsIn(expected, count), SILENCE_MS / 1000, Math.ceil(patienceMs / 1000)];
  const words = [from === NODE_A ? "-" : source, destination, port, count, ...limits].map(String);
  const { stdout } = await lab.runner(namespaceOf(from)).run(["perl", SCRIPT, ...words]);
  const refused = portsAfter(stdout, "refused");
  return async () => {
    const tracked = await trackedPackets(lab, packet);
    const ways = portsAfter(stdout, "sent").flatMap((sport) => {
      const found = tracked.find((entry) => entry.sport === sport) ?? { endpoint: "drop", masqueraded: false };
      return wayOf(refused.includes(sport) ? { ...found, endpoint: "reject" } : found);
    });
    return sharesOf(ways);
  };
}

/** None for the rare packet that does not show whether it was masqueraded. */
function wayOf({ endpoint, masqueraded }: Omit<Tracked, "sport">): readonly string[] {
  return masqueraded === undefined ? [] : [wayTo(endpoint, masqueraded)];
}

function sharesOf(ways: readonly string[]): OutcomeShares {
  return waysOf(ways.map((way) => ({ way, probability: 1 / ways.length })));
}

/** How many of so many requests are refused at least. */
function refusalsIn(expected: Outcome, count: number): number {
  if (expected.verdict === "endpoints") return expected.refused === undefined ? 0 : 1;
  return expected.verdict === "reject" ? count : 0;
}

function portsAfter(output: string, word: string): readonly number[] {
  const lines = output.split("\n").filter((line) => line.startsWith(`${word} `));
  return lines.map((line) => Number(line.slice(word.length)));
}

/**
 * Whether answers pass node-a by: sender and endpoints are elsewhere and see each other's own addresses. The sender
 * asked the frontend and accepts no answer of another host.
 */
function answersPassBy({ from }: CasePacket, expected: Outcome): boolean {
  if (from.node === NODE_A.name || expected.verdict !== "endpoints") return false;
  return expected.landings.every(({ endpoint, masqueraded }) => !masqueraded && !isHere(endpoint));
}

function isHere(endpoint: string): boolean {
  const here = hosts.filter(({ node }) => node === NODE_A.name).flatMap(({ addresses }) => Object.values(addresses));
  return here.some((address) => endpoint.startsWith(socketText(address, 0).slice(0, -1)));
}

/** Sends requests that get no answer; reads from the node's connection tracking where they went. */
async function sendUnanswered(lab: Lab, packet: CasePacket, count: number): Promise<() => Promise<OutcomeShares>> {
  const { from, source, destination: to, port, protocol } = packet;
  if (protocol === "SCTP") throw new Error("SCTP is read from connection tracking anyway");
  // What an earlier row left would count as this one's. There may be nothing to delete.
  const flow = ["-p", protocol.toLowerCase(), "-s", source, "-d", to, "--orig-port-dst", String(port)];
  await lab.runner("node-a").run(["sh", "-c", `conntrack -D "$@" 2> /dev/null || true`, "sh", ...flow]);
  await lab.peer(from).send({ protocol, to, port, source, count, parallel: 8, timeoutMs: SILENCE_MS });
  return async () => {
    const tracked = await trackedPackets(lab, packet);
    return sharesOf(tracked.flatMap(wayOf));
  };
}

interface Tracked {
  readonly sport: number;
  readonly endpoint: string;
  readonly masqueraded: boolean | undefined;
}

/** How node-a translated the packets of this source to this frontend that it remembers. */
async function trackedPackets(lab: Lab, packet: CasePacket): Promise<readonly Tracked[]> {
  const all = await connectionsOf(lab.runner("node-a"), packetFamily(packet), [packet.protocol]);
  const ours = all.filter(({ original: { source, destination, destinationPort } }) =>
    isDeepStrictEqual([source, destination, destinationPort], [packet.source, packet.destination, packet.port]),
  );
  return ours.map((connection) => ({
    sport: connection.original.sourcePort,
    endpoint: socketText(connection.reply.source, connection.reply.sourcePort),
    masqueraded: isMasqueraded(connection, all),
  }));
}

const CLIENT = fileURLToPath(new URL("sctp-ask.pl", import.meta.url));

async function askSctp(
  lab: Lab,
  { from, source, destination, port }: CasePacket,
  count: number,
  timeoutMs: number,
): Promise<readonly Ending[]> {
  // The node itself sends from the address that the kernel chooses.
  const words = [from === NODE_A ? "-" : source, destination, port, count, timeoutMs / 1000].map(String);
  const { stdout } = await lab.runner(namespaceOf(from)).run(["perl", CLIENT, ...words]);
  return stdout.trim().split("\n").map(endingIn);
}

function endingIn(line: string): Ending {
  const [kind = "", server = "", local = "", remote = "", sender = ""] = line.split(" ");
  if (kind === "answer") return { kind, server, local, remote, sender };
  return kind === "refused" || kind === "lost" ? { kind } : { kind: "error", code: line };
}
