/** Runs a case of the conformance table and compares ways with those that are expected. */

import { socketText } from "@fairlead/base";
import type { Backend, EndpointFilter, IPFamily } from "@fairlead/core";
import type { RuleSet, SetState, VirtualServerState } from "@fairlead/netfilter";
import {
  createTracer,
  type Environment,
  type Exploration,
  type Packet,
  packetSet,
  type Rules,
  type Outcome as TraceOutcome,
  type Tracer,
} from "@fairlead/trace";
import { hosts, NODE_A, SECOND_NODE_ADDRESS } from "./addresses.ts";
import { PlannedCluster } from "./clusters.ts";
import { type CasePacket, type ConformanceCase, packetFamily } from "./conformance/case.ts";
import type { Outcome } from "./conformance/expected.ts";
import type { AgentOptions } from "./conformance/options.ts";

/** A mode over a kernel that holds nothing yet. */
export interface BackendUnderTest {
  readonly backend: Backend;
  /** What the kernel holds now. */
  ruleSet(): RuleSet | Rules | Promise<RuleSet | Rules>;
  /** The node as a packet meets it, where rules are not all; default `nodeEnvironment`. */
  environment?(): Environment;
}

/** What the caller brings, so that the table knows no backend. */
export interface BackendsUnderTest {
  open(family: IPFamily, options: AgentOptions): BackendUnderTest;
  filter(options: AgentOptions): EndpointFilter;
}

/**
 * Takes a fresh kernel through the case's history, the first state as a full sync and each later one as a change, and
 * sends its packet through what the kernel then holds.
 */
export async function runCase(row: ConformanceCase, subjects: BackendsUnderTest): Promise<OutcomeShares> {
  const { options, history } = row;
  const family = packetFamily(row.packet);
  const subject = subjects.open(family, options);
  const cluster = new PlannedCluster({
    options,
    semantics: subject.backend.semantics,
    filter: subjects.filter(options),
  });
  for (const [index, state] of history.entries()) {
    const change = cluster.advance(state).changes.get(family);
    if (index === 0) await subject.backend.sync(cluster.plan(family));
    else if (change) await subject.backend.apply(cluster.plan(family), change);
  }
  return tracedWays(row, await subject.ruleSet(), subject.environment?.());
}

/** Where packets ended and with what probability: `10.144.1.5:8080 as the node`, `leave`, `reject`, `drop`. */
export type OutcomeShares = ReadonlyMap<string, number>;

/** Collects ways; equal ones add up. */
export function waysOf(ends: Iterable<{ readonly way: string; readonly probability: number }>): OutcomeShares {
  const ways = new Map<string, number>();
  for (const { way, probability } of ends) ways.set(way, (ways.get(way) ?? 0) + probability);
  return ways;
}

/** @param end `address:port`, or a verdict */
export function wayTo(end: string, masqueraded: boolean): string {
  return masqueraded ? `${end} as the node` : end;
}

export function expectedWays(outcome: Outcome): OutcomeShares {
  if (outcome.verdict !== "endpoints") return new Map([[outcome.verdict, 1]]);
  const { landings, refused } = outcome;
  return waysOf([
    ...landings.map(({ endpoint, masqueraded, probability }) => ({ way: wayTo(endpoint, masqueraded), probability })),
    ...(refused === undefined ? [] : [{ way: "reject", probability: refused }]),
  ]);
}

export interface WaysComparison {
  readonly probabilities: boolean;
  /** By which part of it a probability may be off: nftables mode draws evenly but for half a percent. */
  readonly uneven?: number;
}

/** iptables writes probabilities with eleven digits. */
const TOLERANCE = 1e-6;

/** What differs, in words; empty where nothing does. */
export function differences(expected: OutcomeShares, observed: OutcomeShares, compare: WaysComparison): string[] {
  const { probabilities, uneven = 0 } = compare;
  const ways = [...new Set([...expected.keys(), ...observed.keys()])];
  return ways.flatMap((way) => {
    const [wanted, seen] = [expected.get(way), observed.get(way)];
    if (wanted === undefined) return [`went to ${way}`];
    if (seen === undefined) return [`never went to ${way}`];
    const off = probabilities && Math.abs(wanted - seen) > TOLERANCE + uneven * wanted;
    return off ? [`went to ${way} with probability ${seen} instead of ${wanted}`] : [];
  });
}

const localAddresses = [...Object.values(NODE_A.addresses), ...Object.values(SECOND_NODE_ADDRESS)];

/** Node-a as a packet meets it. */
export const nodeEnvironment: Environment = { localAddresses, outInterface };

/** Where the tracer says that a case's packet ends. */
export function tracedWays(
  row: ConformanceCase,
  rules: RuleSet | Rules,
  environment: Environment = nodeEnvironment,
): OutcomeShares {
  const tracer = createTracer(rules);
  const packet = tracePacket(asSent(row.packet, environment));
  const outcomes = tracer.trace(packet, environment);
  const [differs] = mergedDiffers(tracer, packet, environment);
  if (differs !== undefined) throw new Error(`merged ways: ${differs}`);
  const ends = outcomes.map((outcome) => ({ way: wayOf(outcome), probability: outcome.probability }));
  const strays = row.sticky ? outcomes.flatMap((first) => strayWays(tracer, packet, environment, first)) : [];
  return waysOf([...ends, ...strays]);
}

/** What the node sends to an address of its own (kube-ipvs0 has the services') it sends from there. */
export function asSent(packet: CasePacket, { localAddresses = [] }: Environment): CasePacket {
  const { from, destination } = packet;
  return from === NODE_A && [...localAddresses].includes(destination) ? { ...packet, source: destination } : packet;
}

/** The packet as the tracer takes it: the first of a connection from port 40000. */
export function tracePacket(packet: CasePacket): Packet {
  const { from, source, destination, port, protocol } = packet;
  return {
    family: packetFamily(packet),
    protocol: protocol.toLowerCase(),
    source,
    destination,
    sport: 40_000,
    dport: port,
    ...(from.interface !== undefined && { inInterface: from.interface }),
  };
}

/** Sums of chances are added up in another order. */
const MERGED_TOLERANCE = 1e-12;

/**
 * Where the merged ways of a packet differ from its single ones in anything but the rules on the way: in words, empty
 * where nothing does.
 */
export function mergedDiffers(tracer: Tracer, packet: Packet, environment: Environment): readonly string[] {
  const single = sums(tracer.explore(packet, environment));
  const merged = sums(tracer.explore(packet, environment, { merged: true }));
  return [...new Set([...single.keys(), ...merged.keys()])].flatMap((end) => {
    const [wanted = 0, found = 0] = [single.get(end), merged.get(end)];
    return Math.abs(wanted - found) < MERGED_TOLERANCE ? [] : [`${end}: ${found} instead of ${wanted}`];
  });
}

/**
 * To which endpoint, `address:port`, a client is relayed that comes to a socket, or `reject`; undefined: nothing
 * listens there.
 */
export type AskRelay = (socket: string, client: string) => string | undefined;

/** As many clients as make every share of up to six endpoints exact. */
const CLIENTS = 60;

/**
 * Ways that end at relays as ways to the endpoints behind them, which see the node as the sender.
 *
 * @param sticky a client's later packets go where its first one went; those that do not are ways of their own
 */
export function relayedWays(ways: OutcomeShares, ask: AskRelay, sticky: boolean): OutcomeShares {
  const ends = [...ways].flatMap(([way, probability]) => {
    if (ask(way, "any client") === undefined) return [{ way, probability }];
    return Array.from({ length: CLIENTS }, (_, index) => {
      const client = `client ${index}`;
      const first = ask(way, client) ?? "none";
      const later = sticky ? (ask(way, client) ?? "none") : first;
      const end = later === first ? wayTo(first, first !== "reject") : `${later} after ${first}`;
      return { way: end, probability: probability / CLIENTS };
    });
  });
  return waysOf(ends);
}

/** What ipvs mode has in the kernel alongside rules. */
export interface IpvsState {
  readonly servers: readonly VirtualServerState[];
  readonly sets: readonly SetState[];
  /** On kube-ipvs0. */
  readonly addresses: Iterable<string>;
}

/** Node-a in ipvs mode, with the kernel settings that the mode makes. */
export function ipvsEnvironment({ servers, sets, addresses }: IpvsState): Environment {
  return {
    ...nodeEnvironment,
    localAddresses: [...(nodeEnvironment.localAddresses ?? []), ...addresses],
    sets: new Map(sets.map(({ name, type, members }) => [name, packetSet(type, members)])),
    ipvs: { servers, conntrack: true, expireQuiescentTemplate: true },
  };
}

function wayOf({ verdict, table, translated, masqueraded, destination }: TraceOutcome): string {
  if (verdict !== "accept") return table === "ipvs" ? "empty" : verdict;
  return wayTo(translated ? socketText(destination.address, destination.port ?? 0) : "leave", masqueraded);
}

/** Ways of the sender's next packet that are not the way of its first. */
function strayWays(tracer: Tracer, packet: Packet, environment: Environment, first: TraceOutcome) {
  return tracer
    .trace(packet, afterwards(environment, first))
    .filter((next) => wayOf(next) !== wayOf(first))
    .map((next) => ({
      way: `${wayOf(next)} after ${wayOf(first)}`,
      probability: first.probability * next.probability,
    }));
}

/** What the kernel remembers of the packet. */
function afterwards(environment: Environment, { recentlySeen, template, remembered }: TraceOutcome): Environment {
  const recent = new Map(recentlySeen.map(({ list, address }) => [list, new Map([[address, [1]]])]));
  const { ipvs } = environment;
  return {
    ...environment,
    recent,
    remembered,
    ...(ipvs !== undefined && template !== undefined && { ipvs: { ...ipvs, templates: [template] } }),
  };
}

function outInterface(destination: string): string {
  if (localAddresses.includes(destination) || destination === "::1" || destination.startsWith("127.")) return "lo";
  const host = hosts.find(({ addresses }) => Object.values(addresses).includes(destination));
  return host?.interface ?? "eth0";
}

function sums({ outcomes, undecided }: Exploration): ReadonlyMap<string, number> {
  const shares = new Map<string, number>();
  const add = (end: unknown, share: number) => {
    const key = JSON.stringify(end);
    shares.set(key, (shares.get(key) ?? 0) + share);
  };
  for (const { probability, visits: _, ...end } of outcomes) add(end, probability);
  for (const { probability, problem } of undecided) add(problem.message, probability);
  return shares;
}
