/** One packet on its way through the hooks, with what has been assumed so far. */

import { type AddressWords, addressWords, wordsText } from "@fairlead/base";
import type { IPFamily, VirtualServerState } from "@fairlead/netfilter";
import type { PersistenceTemplate, Remembered, RouteAnswer } from "./environment.ts";
import type { Host } from "./host.ts";
import type { Assumption, TraceError, Visit } from "./outcome.ts";
import type { Endpoint, Hook, Packet, TableName } from "./packet.ts";

/** A chain as packets walk it, of iptables or of nftables. */
export interface Chain {
  readonly name: string;
  /** What becomes of packets that come to its end, where it is a built-in or base chain. */
  readonly policy: "ACCEPT" | "DROP";
  /**
   * What the rule says that the walk is at, or the next one that could concern it; undefined: there are no more.
   * Translation and marks change the walk; ways that it does not take go to `ways.fork`.
   *
   * @throws TraceError for what can't be decided
   */
  step(walk: Walk, ways: WalkContext): RuleVerdict | undefined;
  /** Another chain of the same table. */
  sibling(name: string): Chain | undefined;
  /** The error of a rule of this chain that can't be decided. */
  undecidable(index: number, problem: string): TraceError;
}

export interface WalkContext {
  readonly host: Host;
  /** Takes both ways where a match can't be decided; else that is an error. */
  readonly assuming: boolean;
  /** The caller does not ask which draw led where. */
  readonly merged: boolean;
  /** Takes another way that the packet may go; what its rule has said is in `Walk.said`. */
  readonly fork: (other: Walk) => void;
}

/** What stands at a place of a hook: a table of iptables, a base chain of nftables, or ip_vs. */
export interface StageFacts {
  readonly name: TableName | "ipvs";
  /** Whether it decides a new route of the host's own packets where it has changed them. */
  readonly reroutes: boolean;
  /** Asked for the first packet of a connection only, and not once another one has translated it. */
  readonly isNat: boolean;
  /** Whether connection tracking has seen the packet by then (NF_IP_PRI_CONNTRACK, -200). */
  readonly tracked: boolean;
}

/** A chain being walked, and how the packet came there. Shared between walks, never changed. */
export interface Frame {
  readonly chain: Chain;
  /** Where RETURN leads; undefined: to the policy. */
  readonly returnTo: { readonly frame: Frame; readonly index: number } | undefined;
  /** The frame that jumped or went here, for the detection of loops. */
  readonly from: Frame | undefined;
}

/** A list that grows at its end while others keep the shorter one. */
export interface List<Item> {
  readonly item: Item;
  readonly before: List<Item> | undefined;
}

/** A side of a packet, with the address in both its forms. */
export interface PacketEnd {
  readonly address: string;
  readonly words: AddressWords;
  readonly port: number | undefined;
}

/** A packet on its way. Random choices copy it; what it refers to is shared and never changed. */
export interface Walk {
  readonly family: IPFamily;
  readonly protocol: string;
  state: NonNullable<Packet["state"]>;
  /** What the connection's entry translates the destination to, of a connection known before. */
  readonly entry: Endpoint | undefined;
  source: PacketEnd;
  destination: PacketEnd;
  mark: number;
  /** "" where there is none. */
  inInterface: string;
  /** It came from another host, or in again by lo. */
  arrived: boolean;
  translated: boolean;
  redirected: boolean;
  masqueraded: boolean;
  /** Sent by this host to itself, the packet came in again by lo: nat tables have had their turn. */
  looped: boolean;
  server: VirtualServerState | undefined;
  template: PersistenceTemplate | undefined;
  /** A virtual server sends it to another host: it goes on as if this one had made it. */
  sentOn: boolean;
  /** The last routing decision; undefined: none has been asked for, or the environment has no routes. */
  routed: { readonly answer: RouteAnswer; readonly destination: string; readonly mark: number } | undefined;
  /** What of its routes is unknown. */
  routeUnknown: string | undefined;
  hook: Hook;
  /** Place in the hook's list of stages. */
  step: number;
  /** What stands there; undefined: it is not begun yet. */
  stage: StageFacts | undefined;
  /** A nat table or chain of this hook has translated the packet: the others are not asked. */
  bound: boolean;
  /** What a rule has said that is yet to be followed. */
  said: RuleVerdict | undefined;
  /** Undefined: the stage is not begun yet. */
  frame: Frame | undefined;
  /** Place of the rule in the frame's chain. */
  index: number;
  probability: number;
  visits: List<Visit> | undefined;
  assumed: List<Assumption> | undefined;
  seen: List<{ readonly list: string; readonly address: string }> | undefined;
  remembered: List<Remembered> | undefined;
}

export function startWalk(packet: Packet): Walk {
  return {
    family: packet.family,
    protocol: packet.protocol,
    state: packet.state ?? "NEW",
    entry: packet.dnat,
    source: side(packet.source, packet.sport),
    destination: side(packet.destination, packet.dport),
    mark: (packet.mark ?? 0) >>> 0,
    inInterface: packet.inInterface ?? "",
    arrived: packet.inInterface !== undefined,
    translated: false,
    redirected: false,
    masqueraded: false,
    looped: false,
    server: undefined,
    template: undefined,
    sentOn: false,
    routed: undefined,
    routeUnknown: undefined,
    hook: packet.inInterface === undefined ? "OUTPUT" : "PREROUTING",
    step: 0,
    stage: undefined,
    bound: false,
    said: undefined,
    frame: undefined,
    index: 0,
    probability: 1,
    visits: undefined,
    assumed: undefined,
    seen: undefined,
    remembered: undefined,
  };
}

export function side(address: string, port: number | undefined): PacketEnd {
  const words = addressWords(address);
  return { address: wordsText(words), words, port };
}

export function endpointOf({ address, port }: PacketEnd): Endpoint {
  return port === undefined ? { address } : { address, port };
}

/** The items from the first to the last that was put on. */
export function toArray<Item>(list: List<Item> | undefined): Item[] {
  const items: Item[] = [];
  for (let at = list; at !== undefined; at = at.before) items.push(at.item);
  return items.reverse();
}

export type RuleVerdict =
  /** The next rule. */
  | { readonly kind: "next" }
  | { readonly kind: "return" }
  | { readonly kind: "call"; readonly chain: string; readonly goto: boolean }
  /** Ends the chains of one table at this hook. */
  | { readonly kind: "accept" }
  | { readonly kind: "drop" }
  | { readonly kind: "reject"; readonly with: string };

export const NEXT: RuleVerdict = { kind: "next" };
export const ACCEPT: RuleVerdict = { kind: "accept" };

/** Whether the way on is the same from wherever in the chain it was said. */
export function leavesForGood(step: RuleVerdict): boolean {
  return step.kind !== "next" && (step.kind !== "call" || step.goto);
}

/** A way that takes more for granted than this adds nothing. */
const MAX_ASSUMPTIONS = 10;

export function mayAssumeMore({ assumed }: Walk): boolean {
  let count = 0;
  for (let at = assumed; at !== undefined; at = at.before) count += 1;
  return count < MAX_ASSUMPTIONS;
}

export function withAssumption(
  before: List<Assumption> | undefined,
  visit: Visit,
  { problem, matched }: Pick<Assumption, "problem" | "matched">,
): List<Assumption> {
  return { item: { ...visit, problem, matched }, before };
}

/**
 * Whether the entry's status says that the destination was translated; what ip_vs does to the destination leaves no
 * mark there.
 */
export function isDNATed({ translated, server, entry }: Pick<Walk, "translated" | "server" | "entry">): boolean {
  return (translated && server === undefined) || entry !== undefined;
}
