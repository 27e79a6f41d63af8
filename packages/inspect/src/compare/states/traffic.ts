/** Which packets fare differently between two kernels. */

import type { IPFamily, ModeSemantics, NodePlan, ServiceKey, ServicePortGroup } from "@fairlead/core";
import type { RuleSet } from "@fairlead/netfilter";
import type { Packet, TraceError } from "@fairlead/trace";
import { agrees, examine, type PacketFinding } from "../agreement.ts";
import { addressIn, OUTER_INTERFACE, probesOf, sourcesOf } from "../probes.ts";
import {
  type Comparison,
  compared,
  type Followed,
  follow,
  type KernelState,
  type OutcomeShares,
  sameWays,
  tracedWays,
  viewOf,
} from "../ways.ts";
import { type Destination, destinationsOf, destinationText, rulesSaying, sourcesInNft } from "./destinations.ts";

/** Where packets end, or why that is unknown. */
export type TrafficOutcome = { readonly ways: OutcomeShares } | { readonly problem: string };

/** Packets to one destination that fare differently, from all senders with the same difference. */
export interface TrafficChange {
  /** `tcp 10.96.0.10:80` */
  readonly destination: string;
  /** Names of senders. */
  readonly from: readonly string[];
  readonly before: TrafficOutcome;
  readonly after: TrafficOutcome;
}

export interface TrafficDifference {
  /** Kinds of packets that were traced through both. */
  readonly compared: number;
  readonly changes: readonly TrafficChange[];
  /** Kinds that only other programs masquerade, as pod networks do: not among the changes. */
  readonly masqueraded: number;
}

/** Which of the two is a plan: it knows nothing of what other programs have on the node. */
export type PlannedSide = "before" | "after";

/**
 * Which packets fare differently between two states of one family's kernel, whatever their rules look like: to every
 * destination that either of them speaks of, from every class of senders that either distinguishes.
 *
 * @param nodeAddress where node ports are asked for, and the node; absent: neither is compared
 * @param planned what other programs masquerade makes no difference to it; absent: both are kernels, or plans
 */
export function compareTraffic(
  before: KernelState,
  after: KernelState,
  family: IPFamily,
  nodeAddress: string | undefined,
  planned?: PlannedSide,
): TrafficDifference {
  const senders = sendersOf([before, after], family, nodeAddress);
  const destinations = new Map([...destinationsOf(before, family), ...destinationsOf(after, family)]);
  const [old, now] = [viewOf(before), viewOf(after)];
  const found = Array.from(destinations.values(), (destination) => {
    const packets = packetsTo(destination, senders, family, nodeAddress);
    const different = packets.flatMap(({ sender, packet }) => {
      const [was, is] = [follow(old, packet), follow(now, packet)];
      const one = { from: sender.name, before: fateOf(was), after: fateOf(is) };
      if (sameFate(one.before, one.after)) return [];
      const kind = planned && (planned === "before" ? asPlanned(is, one.before) : asPlanned(was, one.after));
      return kind === "same" ? [] : [{ ...one, isMasqueraded: kind === "masqueraded" }];
    });
    return { destination, packets, different };
  });
  return {
    compared: sumOf(found, ({ packets }) => packets.length),
    changes: found.flatMap(({ destination, different }) =>
      merged(
        destination,
        different.filter(({ isMasqueraded }) => !isMasqueraded),
      ),
    ),
    masqueraded: sumOf(found, ({ different }) => different.filter(({ isMasqueraded }) => isMasqueraded).length),
  };
}

/** A kind of packet that reaches its endpoints in one kernel, and not in another. */
export interface BlockedPackets {
  readonly service: ServiceKey;
  readonly finding: PacketFinding;
}

/** What is to be compared: a plan, a kernel that serves it now, and one that would serve it then. */
export interface BlockedRequest {
  readonly groups: Iterable<ServicePortGroup>;
  readonly node: NodePlan;
  readonly before: KernelState;
  readonly after: KernelState;
  /** Where node ports are asked for, and the source of the node's own packets; absent: neither is. */
  readonly nodeAddress: string | undefined;
  readonly semantics: Pick<ModeSemantics, "letsNodeOut">;
}

/**
 * The packets to services that other programs' rules stop in `after` and not in `before`: a firewall that lets pass
 * what one mode marks or accepts, and drops what the other one translates.
 */
export function blockedPackets(request: BlockedRequest): readonly BlockedPackets[] {
  const { groups, node, nodeAddress, semantics } = request;
  const [before, after] = [viewOf(request.before), viewOf(request.after)];
  return [...groups].flatMap((group) =>
    [...probesOf(group, node, nodeAddress)].flatMap((probe) => {
      const finding = examine(group, probe, after);
      if (finding.found === undefined || agrees(finding, semantics)) return [];
      const now = examine(group, probe, before);
      return agrees(now, semantics) ? [{ service: group.service, finding }] : [];
    }),
  );
}

function sumOf<T>(all: readonly T[], of: (one: T) => number): number {
  return all.reduce((sum, one) => sum + of(one), 0);
}

/** How what a kernel does with a packet compares with a plan of its proxy's rules. */
function asPlanned(kernel: Followed, plan: TrafficOutcome): Comparison["kind"] {
  return "problem" in plan ? "unknown" : compared(kernel, plan.ways).kind;
}

/** A representative of one class of senders, which rules treat alike. */
interface Sender {
  /** `10.144.0.0/16`, `the node`, `elsewhere` */
  readonly name: string;
  readonly address: string;
  /** Absent: the node itself sends. */
  readonly inInterface?: string;
}

function packetsTo(
  { protocol, address, port }: Destination,
  senders: readonly Sender[],
  family: IPFamily,
  nodeAddress: string | undefined,
): readonly { readonly sender: Sender; readonly packet: Packet }[] {
  const destination = address ?? nodeAddress;
  if (destination === undefined) return [];
  return senders.map((sender) => {
    const packet = { family, protocol, source: sender.address, sport: 40_000, destination, dport: port };
    return {
      sender,
      packet: sender.inInterface === undefined ? packet : { ...packet, inInterface: sender.inInterface },
    };
  });
}

function fateOf(followed: Followed): TrafficOutcome {
  if ("outcomes" in followed) return { ways: tracedWays(followed.outcomes) };
  const { problem, error } = followed;
  return { problem: error === undefined ? problem : problemText(error) };
}

/** Without the number of the rule, which changes with those before it. */
function problemText({ problem, table, rule }: TraceError): string {
  return `${problem}: ${table} ${rule}`;
}

function sameFate(a: TrafficOutcome, b: TrafficOutcome): boolean {
  if ("problem" in a || "problem" in b) return "problem" in a && "problem" in b && a.problem === b.problem;
  return sameWays(a.ways, b.ways);
}

type Changed = Pick<TrafficChange, "before" | "after"> & { readonly from: string };

function merged(destination: Destination, changes: readonly Changed[]): readonly TrafficChange[] {
  const groups: { from: string[]; before: TrafficOutcome; after: TrafficOutcome }[] = [];
  for (const { from, before, after } of changes) {
    const alike = groups.find((one) => sameFate(one.before, before) && sameFate(one.after, after));
    if (alike === undefined) groups.push({ from: [from], before, after });
    else alike.from.push(from);
  }
  return groups.map((group) => ({ destination: destinationText(destination), ...group }));
}

/** Rules of more CIDRs than these are a list of addresses, which is not searched. */
const MOST_CIDRS = 16;

/**
 * One sender for each class that either rule set distinguishes by its address: those in a CIDR that a rule names as a
 * source, the node itself, and all others.
 */
function sendersOf(
  states: readonly Pick<KernelState, "ruleSet" | "nftables">[],
  family: IPFamily,
  nodeAddress: string | undefined,
): readonly Sender[] {
  const named = states.flatMap(({ ruleSet, nftables = [] }) => [
    ...sourceCIDRs(ruleSet),
    ...nftables.flatMap((table) => [...sourcesInNft(table, family)]),
  ]);
  const cidrs = [...new Set(named)].sort().slice(0, MOST_CIDRS);
  const inside = cidrs.map((cidr): Sender => ({ name: cidr, address: addressIn(cidr), inInterface: "pod0" }));
  const others = sourcesOf({ family, detector: { kind: "cidrs", cidrs }, nodeAddress });
  return [
    ...inside,
    ...others.flatMap(({ class: kind, address }): Sender[] => {
      if (kind === "pod") return [];
      return [
        kind === "node" ? { name: "the node", address } : { name: "elsewhere", address, inInterface: OUTER_INTERFACE },
      ];
    }),
  ];
}

/** Single hosts are endpoints that reach themselves, and loopback is the node. */
const NO_CLASS = /^127\.|\/(?:32|128)$/;
/** The same of a rule's text. */
const SOME_CLASS = /(?:^|\s)-s (?!\S+\/(?:32|128)(?:\s|$))/;

function* sourceCIDRs(ruleSet: RuleSet): Generator<string> {
  for (const { chains } of ruleSet.values()) {
    for (const chain of chains.values()) {
      for (const { source } of rulesSaying(chain, SOME_CLASS)) {
        if (source !== undefined && !NO_CLASS.test(source.cidr)) yield source.cidr;
      }
    }
  }
}
