import { setTimeout as sleep } from "node:timers/promises";
import { IP_FAMILIES, socketText } from "@fairlead/base";
import type { IPFamily, Protocol } from "@fairlead/core";
import type { Connection, Nfacct } from "@fairlead/kernel";
import type { ProbeResult } from "@fairlead/lab/peer/protocol";
import type { Lab } from "@fairlead/lab/plain/lab";
import type { Rule, RuleSet } from "@fairlead/netfilter";
import {
  addressOf,
  goldenScenarios,
  NODE_A,
  nodeEnvironment,
  recordedScenarios,
  SECOND_NODE_ADDRESS,
} from "@fairlead/testkit";
import { createTracer, type Environment, type Landing, landings, type Packet, type Rules } from "@fairlead/trace";
import { connectionsOf, isMasqueraded } from "../tracked.ts";
import { type SentPacket, senders } from "./arbitrary-rules.ts";

type SendOutcome =
  | { readonly verdict: "reject" | "drop" }
  | { readonly verdict: "accept"; readonly destination: string; readonly masqueraded: boolean | undefined };

interface Comparison {
  /** A line for each packet of which the tracer says something else than happened. */
  readonly differences: readonly string[];
  /** What happened to the packets: `accept`, `accept, masqueraded`, `accept, port taken`, `drop` and `reject`. */
  readonly kinds: ReadonlySet<string>;
}

/** A packet to send, as a rule from a port that no other of the run has. */
interface Parcel extends SentPacket {
  readonly sourcePort?: number;
}

/** Node-a's side of a pod's link has this address, and no other. */
const GATEWAY = "169.254.1.1";

const environment: Environment = {
  ...nodeEnvironment,
  localAddresses: [...(nodeEnvironment.localAddresses ?? []), GATEWAY],
  redirectAddress: (name) => (name === "eth0" ? undefined : GATEWAY),
};

/**
 * Sends packets through node-a, and through the tracer over what its kernel holds.
 *
 * @param rules as iptables-save and nft printed them
 */
export async function compare(
  lab: Lab,
  rules: RuleSet | Rules,
  packets: readonly Parcel[],
  family: IPFamily,
): Promise<Comparison> {
  const tracer = createTracer(rules);
  const shipments = packets.map((packet) => {
    const { sourcePort = unusedPort() } = packet;
    const reported = landings(tracer.trace(tracePacket(packet, sourcePort), environment));
    return { ...packet, sourcePort, reported, answered: isAnswered(packet, reported) };
  });
  const fates = await sendAll(lab, shipments, family);
  const differences = shipments.flatMap((shipment, at) => {
    const fate = fates[at];
    return fate !== undefined && shipment.reported.some((landing) => isThat(landing, fate))
      ? []
      : [story(shipment, fate)];
  });
  return { differences, kinds: new Set(fates.map(kindOf)) };
}

function kindOf(fate: SendOutcome): string {
  if (fate.verdict !== "accept") return fate.verdict;
  if (fate.masqueraded === undefined) return "accept, port taken";
  return fate.masqueraded ? "accept, masqueraded" : "accept";
}

/** Below the ports that peers choose themselves, and above those that nodes listen on (kube-proxy: 10249, 10256). */
const FIRST_PORT = 10_300;
const LAST_PORT = 32_999;

let nextPort = FIRST_PORT;

/** No two packets of a run are one connection. */
function unusedPort(): number {
  const port = nextPort;
  nextPort = port === LAST_PORT ? FIRST_PORT : port + 1;
  return port;
}

function tracePacket({ family, from, protocol, source, destination, port }: SentPacket, sport: number): Packet {
  const arrival = from.interface === undefined ? {} : { inInterface: from.interface };
  return { family, protocol: protocol === "TCP" ? "tcp" : "udp", source, destination, sport, dport: port, ...arrival };
}

/** Whether the sender is sure to hear of the packet: not where it may also be dropped. */
function isAnswered(packet: SentPacket, reported: readonly Landing[]): boolean {
  return reported.some((landing) => isHeardOf(packet, landing)) && reported.every(({ verdict }) => verdict !== "drop");
}

/** Where a REDIRECT of the node's own packets leads. */
const LOOPBACK = ["127.0.0.1", "::1"];

/**
 * A refusal, and what the node serves itself with: its connection tracking does not show whether that came to its end.
 */
function isHeardOf({ from, family }: SentPacket, { verdict, destination }: Landing): boolean {
  if (verdict !== "accept" || from !== NODE_A) return verdict === "reject";
  return [...ownAddresses(family), ...LOOPBACK].some((address) =>
    destination.startsWith(socketText(address, 0).slice(0, -1)),
  );
}

function isThat({ verdict, destination, masqueraded }: Landing, fate: SendOutcome): boolean {
  if (fate.verdict !== "accept") return verdict === fate.verdict;
  const { masqueraded: seen = masqueraded } = fate;
  return verdict === "accept" && destination === fate.destination && masqueraded === seen;
}

interface Shipment extends SentPacket {
  readonly sourcePort: number;
  readonly answered: boolean;
}

function story(shipment: Shipment & { readonly reported: readonly Landing[] }, fate: SendOutcome | undefined): string {
  const { from, protocol, source, destination, port, reported } = shipment;
  return `${protocol} ${from.name} ${source} → ${destination} ${port}: ${JSON.stringify(fate)}, reported ${JSON.stringify(reported)}`;
}

/** How long a refusal may take that is to come, and one that is not. */
const PATIENCE_MS = 60_000;
const SILENCE_MS = 300;
/** Well before an entry of UDP ends. */
const EARLY_MS = 2_000;

/**
 * Sends all packets at once. What was accepted stands in node-a's connection tracking, translation and masquerade
 * included; what was refused is known to the sender; the rest was dropped.
 */
async function sendAll(lab: Lab, packets: readonly Shipment[], family: IPFamily): Promise<readonly SendOutcome[]> {
  const sent = packets.map((packet) => sendOne(lab, packet));
  const all = Promise.all(sent);
  const runner = lab.runner("node-a");
  // Most are answered at once. An entry of UDP lives for 30 s, and the last answer may take longer.
  await Promise.race([all, sleep(EARLY_MS)]);
  const early = byFlow(await connectionsOf(runner, family, PROTOCOLS));
  // What is tracked was accepted: chance may refuse the next try of its sender, half a minute later.
  const results = await Promise.all(packets.map((packet, at) => (isAccepted(packet, early) ? undefined : sent[at])));
  const connections = new Map([...early, ...byFlow(await connectionsOf(runner, family, PROTOCOLS))]);
  return packets.map((packet, at) => {
    const connection = connections.get(flowKey(packet));
    if (connection === undefined) return { verdict: stopped(results[at]) };
    return fateOf(packet, connection, isMasqueraded(connection, connections.values()), results[at]);
  });
}

const PROTOCOLS = ["TCP", "UDP"] as const;

function byFlow(connections: readonly Connection[]): ReadonlyMap<string, Connection> {
  return new Map(connections.map((one) => [flowKey({ protocol: one.protocol, ...one.original }), one]));
}

async function sendOne(lab: Lab, packet: Shipment): Promise<ProbeResult | undefined> {
  const { from, protocol, source, sourcePort, destination: to, port, answered } = packet;
  const own = from === NODE_A ? {} : { source };
  const timeoutMs = answered ? PATIENCE_MS : SILENCE_MS;
  const [result] = await lab
    .peer(from)
    .send({ protocol, to, port, ...own, sourcePort, count: 1, parallel: 1, timeoutMs });
  return result;
}

/** Whether that is known without what the sender hears of it. */
function isAccepted(packet: Shipment, connections: ReadonlyMap<string, Connection>): boolean {
  const connection = connections.get(flowKey(packet));
  return connection !== undefined && !isLooped(packet, connection);
}

interface Sent {
  readonly protocol: Protocol;
  readonly source: string;
  readonly sourcePort: number;
}

function flowKey({ protocol, source, sourcePort }: Sent): string {
  return `${protocol} ${source} ${sourcePort}`;
}

function stopped(result: ProbeResult | undefined): "reject" | "drop" {
  if (result?.kind === "refused") return "reject";
  if (result?.kind === "lost") return "drop";
  throw new Error(`no connection, and yet: ${JSON.stringify(result)}`);
}

function fateOf(
  packet: Shipment,
  connection: Connection,
  masqueraded: boolean | undefined,
  result: ProbeResult | undefined,
): SendOutcome {
  const { reply } = connection;
  if (masqueraded === true && !ownAddresses(packet.family).includes(reply.destination)) {
    throw new Error(`masqueraded as ${reply.destination}`);
  }
  if (isLooped(packet, connection) && result?.kind !== "answer") return { verdict: stopped(result) };
  return { verdict: "accept", destination: socketText(reply.source, reply.sourcePort), masqueraded };
}

/** What the node sends to itself is a connection before INPUT is asked. */
function isLooped({ family, from }: Shipment, { reply }: Connection): boolean {
  return from === NODE_A && [...ownAddresses(family), ...LOOPBACK].includes(reply.source);
}

function ownAddresses(family: IPFamily): readonly string[] {
  return [NODE_A.addresses[family], SECOND_NODE_ADDRESS[family]];
}

/** What the real kube-proxy wrote for one family of a scenario, as iptables-save printed it. */
export interface Recording {
  readonly name: string;
  readonly family: IPFamily;
  readonly text: string;
}

/** A plain user's netlink buffer does not take a whole table of more. */
const LARGEST_TEXT = 60_000;

export function recordings(): readonly Recording[] {
  const golden = goldenScenarios().map(({ name, iptables, ip6tables }) => ({
    name,
    saves: { IPv4: iptables, IPv6: ip6tables },
  }));
  const all = [...golden, ...recordedScenarios()].flatMap(({ name, saves }) =>
    IP_FAMILIES.map((family) => ({ name, family, text: saves[family] ?? "" })),
  );
  return all.filter(({ text }) => text !== "" && text.length <= LARGEST_TEXT);
}

/** All ports that the recordings name: of frontends, and of endpoints. */
export function portsOf(all: readonly Recording[]): readonly number[] {
  const named = all.flatMap(({ text }) => [...text.matchAll(/(?:--dport |--to-destination \S*:)(\d+)/g)]);
  return [...new Set(named.map(([, port]) => Number(port)))];
}

/** Packets of all hosts to everything that the rules know: addresses with their ports, and node ports. */
export function packetsFor(ruleSet: RuleSet, family: IPFamily): readonly SentPacket[] {
  const rules = ["nat", "filter"].flatMap((table) =>
    [...(ruleSet.get(table === "nat" ? "nat" : "filter")?.chains.values() ?? [])].flatMap((chain) => [...chain.rules]),
  );
  const frontends = new Map(
    rules.flatMap((rule) => frontendsOf(rule, family)).map((one) => [JSON.stringify(one), one]),
  );
  return [...frontends.values()].flatMap((frontend) => {
    const elsewhere = LINK_LOCAL.test(frontend.destination) ? [] : senders.elsewhere;
    return [...senders.here, ...elsewhere].flatMap((from) => sent(from, family, frontend));
  });
}

/** No router forwards these: a packet of another host does not leave it. */
const LINK_LOCAL = /^(?:169\.254\.|fe[89ab])/;

type Frontend = Pick<SentPacket, "protocol" | "destination" | "port">;

function frontendsOf(rule: Rule, family: IPFamily): readonly Frontend[] {
  return rule.matches.flatMap((match): Frontend[] => {
    if ((match.kind !== "tcp" && match.kind !== "udp") || match.dport === undefined) return [];
    const protocol = match.kind === "tcp" ? "TCP" : "UDP";
    const { from: port } = match.dport;
    const address = rule.destination?.cidr.split("/")[0];
    const own = [NODE_A.addresses[family], SECOND_NODE_ADDRESS[family], ...(family === "IPv4" ? ["127.0.0.1"] : [])];
    const destinations = address === undefined || rule.destination?.cidr === "127.0.0.0/8" ? own : [address];
    return destinations.map((destination) => ({ protocol, destination, port }));
  });
}

function sent(from: SentPacket["from"], family: IPFamily, frontend: Frontend): readonly SentPacket[] {
  const { destination, protocol } = frontend;
  const loopback = destination === "127.0.0.1";
  // Another host reaches its own loopback, and refused and dropped datagrams are one error to their own host.
  if (from === NODE_A ? protocol === "UDP" : loopback) return [];
  const own = from === NODE_A && (loopback || destination === SECOND_NODE_ADDRESS[family]);
  return [{ ...frontend, from, family, source: own ? destination : addressOf(from, family) }];
}

/** The text less counters that this kernel has not got, as kube-proxy itself leaves them out. */
export async function withKnownCounters(text: string, nfacct: Nfacct): Promise<string> {
  const names = new Set([...text.matchAll(/--nfacct-name +(\S+)/g)].map(([, name = ""]) => name));
  const made = await Promise.all([...names].map(async (name) => ((await nfacct.ensure(name)).ok ? [] : [name])));
  const missing = new Set(made.flat());
  return text.replaceAll(/ -m nfacct --nfacct-name +(\S+)/g, (words, name) => (missing.has(name) ? "" : words));
}
