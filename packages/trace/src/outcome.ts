/** What becomes of a packet, and on which way. */

import { socketText } from "@fairlead/base";
import { type Rule, renderRule, type Table, type VirtualServerKey } from "@fairlead/netfilter";
import { type NftRule, type NftTable, ruleText } from "@fairlead/netfilter/nft";
import type { PersistenceTemplate, Remembered } from "./environment.ts";
import type { Endpoint, Hook, HookStage, TableName } from "./packet.ts";

/** A rule that matched, in the order of the packet's way. */
export type Visit = IptablesVisit | NftVisit;

interface VisitPlace {
  /** The one that the packet is in. */
  readonly hook: Hook;
  /** The name of the rule's chain: `KUBE-SERVICES`. */
  readonly chain: string;
  /** Place of the rule in its chain, from 0. */
  readonly index: number;
}

/** A visit to a rule of iptables. */
export interface IptablesVisit extends VisitPlace {
  /** The table of iptables that has the chain. */
  readonly table: Table;
  /** The rule itself. */
  readonly rule: Rule;
}

/** A visit to a rule of nftables. */
export interface NftVisit extends VisitPlace {
  /** The table's family and name: `ip kube-proxy`. */
  readonly table: TableName;
  /** The table, whose sets the rule may name, and the rule itself. */
  readonly nft: { readonly table: NftTable; readonly rule: NftRule };
}

/** What a way takes for granted of a rule that can't be decided. */
export type Assumption = Visit & {
  readonly matched: boolean;
  /** Why it can't be decided. */
  readonly problem: string;
};

/** A path that cannot be followed to its end. */
export interface Undecided {
  /** As of an outcome. */
  readonly probability: number;
  /** The rule, and what of it can't be decided. */
  readonly problem: TraceError;
  /** Rules that matched before it. */
  readonly visits: readonly Visit[];
  /** What the path takes for granted up to there. */
  readonly assumed: readonly Assumption[];
}

/** What is known of a packet where not all rules can be decided. */
export interface Exploration {
  /** Ways that end. */
  readonly outcomes: readonly Outcome[];
  /** Ways that reach a rule which the tracer cannot follow. */
  readonly undecided: readonly Undecided[];
}

/** One way that the packet may take, with what becomes of it. */
export interface Outcome {
  /**
   * Product of the random choices on the way: 0 < probability ≤ 1. The outcomes of a packet sum up to 1; those of an
   * exploration do for each way in which its assumptions may turn out.
   */
  readonly probability: number;
  /** accept: it was delivered or sent on. reject: its sender gets an error. drop: it gets no answer. */
  readonly verdict: "accept" | "reject" | "drop";
  /** Type of the ICMP message or tcp-reset, where the verdict is reject. */
  readonly rejectWith?: string;
  /** Why no route takes the packet, where it ended at the stage routing. */
  readonly noRoute?: string;
  /**
   * What is unknown of its routes: whether it gets there depends on that. Absent without `Environment.route`.
   */
  readonly routeUnknown?: string;
  /** Where it ended: hook and table of the verdict; for accept the last of the way. */
  readonly hook: Hook;
  /** The stage at that hook. */
  readonly table: HookStage;
  /** Only of accepted packets: delivered on this host, sent on for another host, or sent by this one. */
  readonly path?: "input" | "forward" | "output";
  /** After translation; equal to the packet's where nothing translates. */
  readonly destination: Endpoint;
  /**
   * A DNAT or REDIRECT rule or a virtual server took the packet, or (`Packet.dnat`) had taken its connection before.
   */
  readonly translated: boolean;
  /** A REDIRECT rule sent it to this host itself. */
  readonly redirected: boolean;
  /** The virtual server that took the packet; where the verdict is reject at the stage ipvs, it had no destination. */
  readonly virtualServer?: VirtualServerKey;
  /** What a persistent server now knows of the client. */
  readonly template?: PersistenceTemplate;
  /** MASQUERADE or SNAT gave it another source. */
  readonly masqueraded: boolean;
  /** After that, as far as the environment knows. */
  readonly source: Endpoint;
  /** fwmark at the end, 32 bits. */
  readonly mark: number;
  /** As far as the environment knows. */
  readonly outInterface?: string;
  /** The rules that matched on the way. */
  readonly visits: readonly Visit[];
  /** Only of an exploration: what has to be so for the packet to take this way. Absent: nothing, it is certain. */
  readonly assumed?: readonly Assumption[];
  /** Addresses that `-m recent --set` put into lists on the way. */
  readonly recentlySeen: readonly { readonly list: string; readonly address: string }[];
  /** What the packet put into sets of nftables on the way, or took out of them. */
  readonly remembered: readonly Remembered[];
}

/** The packet reached a rule that the tracer can't decide, or the rule set is one that the kernel would refuse. */
export class TraceError extends Error {
  override readonly name = "TraceError";
  /** The table of the rule. */
  readonly table: TableName;
  /** The chain of the rule. */
  readonly chain: string;
  /** Place of the rule in its chain, from 0. */
  readonly index: number;
  /** The rule as its tools print it, `-A INPUT …` or `ct state new …`. */
  readonly rule: string;
  /** What of it can't be decided. */
  readonly problem: string;

  private constructor(
    { table, chain, index }: Omit<PlaceOf<TableName, unknown>, "rule">,
    rule: string,
    problem: string,
  ) {
    super(`${problem}: rule ${index + 1} of ${table} ${chain}: ${rule}`.trimEnd());
    this.table = table;
    this.chain = chain;
    this.index = index;
    this.rule = rule;
    this.problem = problem;
  }

  /** Of a rule of iptables. */
  static ofRule(place: PlaceOf<Table, Rule>, problem: string): TraceError {
    return new TraceError(place, `-A ${place.chain} ${renderRule(place.rule)}`.trimEnd(), problem);
  }

  /** Of a rule of nftables. */
  static ofNftRule({ chain, index, rule, table }: PlaceOf<NftTable, NftRule>, problem: string): TraceError {
    const name: TableName = `${table.family} ${table.name}`;
    return new TraceError({ table: name, chain, index }, ruleText(rule, table), problem);
  }
}

/** Outcomes that only the host itself could distinguish, taken together. */
export interface Landing {
  /** What becomes of the packet there. */
  readonly verdict: Outcome["verdict"];
  /** `10.144.1.5:8080`, `[fd00::1]:80`; without a port where the protocol has none. */
  readonly destination: string;
  /** Whether DNAT, REDIRECT or a virtual server gave it another destination. */
  readonly translated: boolean;
  /** Whether MASQUERADE or SNAT gave it another source. */
  readonly masqueraded: boolean;
  /** The sum over its outcomes: 0 < probability ≤ 1. */
  readonly probability: number;
}

/** Where the packet may end and how probable each place is, in the order in which the places come up. */
export function landings(outcomes: Iterable<Outcome>): Landing[] {
  const found = new Map<string, Landing>();
  for (const outcome of outcomes) {
    const landing = landingOf(outcome);
    const { verdict, destination, translated, masqueraded } = landing;
    const key = [verdict, destination, translated, masqueraded].join(" ");
    const before = found.get(key)?.probability ?? 0;
    found.set(key, { ...landing, probability: before + landing.probability });
  }
  return [...found.values()];
}

/**
 * The same outcomes without what rules outside a service proxy's chains make of the source: pod networks masquerade on
 * their own account (flannel does toward other networks), which a proxy neither wants nor hinders.
 */
export function withoutOthersMasquerade(outcomes: readonly Outcome[]): readonly Outcome[] {
  return outcomes.map((outcome) =>
    outcome.masqueraded && !outcome.visits.some(isProxysMasquerade) ? { ...outcome, masqueraded: false } : outcome,
  );
}

interface PlaceOf<In, Of> {
  readonly table: In;
  readonly chain: string;
  readonly index: number;
  readonly rule: Of;
}

function landingOf({ verdict, destination, translated, masqueraded, probability }: Outcome): Landing {
  const { address, port } = destination;
  const text = port === undefined ? address : socketText(address, port);
  return { verdict, destination: text, translated, masqueraded, probability };
}

function isProxysMasquerade(visit: Visit): boolean {
  if ("nft" in visit) return /^ip6? kube-proxy$/.test(visit.table) && visit.chain === "masquerading";
  return visit.table === "nat" && visit.chain.startsWith("KUBE-") && visit.rule.target?.kind === "masquerade";
}
